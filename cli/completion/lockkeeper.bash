# bash completion for lockkeeper: `source <(lockkeeper completion bash)`, or installed with the package.
_lockkeeper() {
  local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} command=${COMP_WORDS[1]:-}
  local commands='run show list break limit migrate completion' common='--store --config --namespace --help' i
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    mapfile -t COMPREPLY < <(compgen -W "$commands --help --version" -- "$word")
    return
  fi
  # What follows "--" is a command line of its own.
  for ((i = 2; i < COMP_CWORD; i++)); do
    if [[ $command == run && ${COMP_WORDS[i]} == -- ]]; then
      if declare -F _command_offset >/dev/null; then
        _command_offset $((i + 1))
      elif ((COMP_CWORD == i + 1)); then
        mapfile -t COMPREPLY < <(compgen -c -- "$word")
      else
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
      fi
      return
    fi
  done
  case $previous in
    --config | -c)
      mapfile -t COMPREPLY < <(compgen -f -- "$word")
      return
      ;;
    --store | -s)
      mapfile -t COMPREPLY < <(compgen -W 'redis:// rediss:// redis+unix:/// redis+sentinel:// redis+cluster:// redis+legacy:// etcd:// etcds:// memory:' -- "$word")
      return
      ;;
    --kind | -k)
      mapfile -t COMPREPLY < <(compgen -W 'token-bucket leaky-meter leaky-queue sliding-window fixed-window' -- "$word")
      return
      ;;
    --rate | -r | --burst | -b | --name | -m | --cost) return ;;
    --namespace | -n | --ttl | -t | --wait | -w | --grace | -g) return ;;
  esac
  case $command in
    run) mapfile -t COMPREPLY < <(compgen -W "$common --ttl --wait --grace --" -- "$word") ;;
    break) mapfile -t COMPREPLY < <(compgen -W "$common --yes" -- "$word") ;;
    limit)
      mapfile -t COMPREPLY < <(compgen -W "$common --rate --burst --kind --name --cost --wait --peek --reset" -- "$word")
      ;;
    show | list) mapfile -t COMPREPLY < <(compgen -W "$common" -- "$word") ;;
    migrate) mapfile -t COMPREPLY < <(compgen -W "audit status advance $common --dry-run" -- "$word") ;;
    completion) mapfile -t COMPREPLY < <(compgen -W 'bash --help' -- "$word") ;;
  esac
}
complete -F _lockkeeper lockkeeper
