# bash completion for lockkeeper: `source <(lockkeeper completion bash)`, or installed with the package.
_lockkeeper() {
  local line=${COMP_LINE:0:COMP_POINT} words word candidates i
  read -ra words <<<"$line"
  [[ $line != *[[:space:]] ]] || words+=('')
  word=${words[-1]}
  # Not as arguments: everybody on the machine can read those.
  mapfile -t candidates < <(printf '%s\n' "${words[@]:1}" | "${words[0]}" completion candidates 2>/dev/null)
  COMPREPLY=()
  case ${candidates[0]-} in
    '') return ;;
    :files)
      mapfile -t COMPREPLY < <(compgen -f -- "$word")
      # Otherwise bash inserts the name as it is, and runs what it contains.
      compopt -o filenames 2>/dev/null
      ;;
    :command)
      for ((i = 1; i < COMP_CWORD; i++)); do [[ ${COMP_WORDS[i]} != -- ]] || break; done
      if declare -F _command_offset >/dev/null; then
        _command_offset $((i + 1))
      elif ((COMP_CWORD == i + 1)); then
        mapfile -t COMPREPLY < <(compgen -c -- "$word")
        for i in "${!COMPREPLY[@]}"; do printf -v "COMPREPLY[i]" %q "${COMPREPLY[i]}"; done
      else
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
        compopt -o filenames 2>/dev/null
      fi
      return
      ;;
    *) COMPREPLY=("${candidates[@]%%$'\t'*}") ;;
  esac
  # Bash ends a word at these, and replaces only what comes after the last one.
  if [[ $COMP_WORDBREAKS == *:* && $word == *[:=]* ]]; then COMPREPLY=("${COMPREPLY[@]#"${word%"${word##*[:=]}"}"}"); fi
  [[ ${COMPREPLY[0]-} != *[/:=] ]] || compopt -o nospace 2>/dev/null
}
complete -F _lockkeeper lockkeeper
