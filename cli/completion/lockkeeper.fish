# fish completion for lockkeeper: `lockkeeper completion fish | source`, or installed with the package.
function __lockkeeper_candidates
  set -l words (commandline -opc) (commandline -ct)
  # Not as arguments: everybody on the machine can read those.
  set -l candidates (printf '%s\n' $words[2..] | $words[1] completion candidates 2>/dev/null)
  switch "$candidates[1]"
    case :files
      __fish_complete_path (commandline -ct)
    case :command
      set -l dashes (contains -i -- -- $words)
      set -l before $words[(math $dashes + 1)..-2]
      complete -C (string join ' ' -- (string escape -- $before) (commandline -ct))
    case '*'
      printf '%s\n' $candidates
  end
end
complete -c lockkeeper -f -a '(__lockkeeper_candidates)'
