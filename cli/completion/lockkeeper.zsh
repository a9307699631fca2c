#compdef lockkeeper
# zsh completion for lockkeeper: `source <(lockkeeper completion zsh)`, or installed with the package.
_lockkeeper() {
  local -a candidates
  # Not as arguments: everybody on the machine can read those.
  candidates=("${(@f)$(print -rl -- "${(@)words[2,CURRENT]}" | "${words[1]}" completion candidates 2>/dev/null)}")
  case ${candidates[1]} in
    '') ;;
    :files) _files ;;
    :command)
      local dashes=${words[(i)--]}
      shift $dashes words
      ((CURRENT -= dashes))
      _normal
      ;;
    *[/:]) compadd -S '' -- "${(@)candidates%%$'\t'*}" ;;
    *) compadd -- "${(@)candidates%%$'\t'*}" ;;
  esac
}
if [[ ${funcstack[1]} == _lockkeeper ]]; then _lockkeeper "$@"; else compdef _lockkeeper lockkeeper; fi
