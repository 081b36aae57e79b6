"""Shell completion: what may come next on a command line, and the scripts that ask for it.

`hoicli completion SHELL` prints a script, which calls `hoicli completion SHELL -- WORDS...` whenever Tab is pressed:
the words after `hoicli` up to the cursor, the last one incomplete and possibly empty. The answer is a line a candidate,
value and description with a tab between. No answer leaves the shell to complete file names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Candidate = tuple[str, str]
"""(the whole word, what it means)."""

DESCRIPTION = 70
"""Columns of a description: a menu is one line an entry."""


def candidates(group: Any, words: Sequence[str]) -> list[Candidate]:
    """What the last of `words` may become.

    group: the typer group of the commands. words: those after `hoicli`, at least one. A word that is no command, or an
    option that takes anything (a file, a number), has no candidates.
    """
    *before, current = words
    context = _context(group, "hoicli")
    if not before or before == ["help"]:
        if current.startswith("-"):
            return _options(group, context, current, set())
        names = [(name, group.summary(name)) for name in group.list_commands(context)]
        return _matching(names, current)
    command = group.get_command(context, before[0])
    if command is None:
        return []
    return _of_command(command, _context(command, before[0], context), before[1:], current)


def _context(command: Any, name: str, parent: Any = None) -> Any:
    """What a command's parameters are asked with. Nothing is parsed, which would take longer than all the rest."""
    return command.context_class(command, info_name=name, parent=parent, **command.context_settings)


def _of_command(command: Any, context: Any, before: Sequence[str], current: str) -> list[Candidate]:
    """Candidates within a command: an option's value, an option, or an argument."""
    options = {
        name: param
        for param in command.get_params(context)
        if _is_option(param)
        for name in (*param.opts, *param.secondary_opts)
    }
    used: set[str] = set()
    awaiting: Any = None  # the option whose value comes next
    arguments = 0
    only_arguments = False
    for word in before:
        if awaiting is not None:
            awaiting = None
        elif only_arguments or not word.startswith("-") or word == "-":
            arguments += 1
        elif word == "--":
            only_arguments = True
        else:
            name, equals, _ = word.partition("=")
            param = options.get(name)
            if param is not None:
                used.add(param.name)
                awaiting = param if not equals and not param.is_flag else None
    if awaiting is not None:
        return _values(awaiting, context, current)
    if not only_arguments and current.startswith("--") and "=" in current:
        name, _, value = current.partition("=")
        found = _values(options[name], context, value) if name in options else []
        return [(f"{name}={value}", text) for value, text in found]
    if not only_arguments and current.startswith("-"):
        return _options(command, context, current, used)
    params = [param for param in command.get_params(context) if not _is_option(param)]
    if not params or (arguments >= len(params) and params[-1].nargs != -1):
        return []
    return _values(params[min(arguments, len(params) - 1)], context, current)


def _is_option(param: Any) -> bool:
    return bool(param.param_type_name == "option")


def _values(param: Any, context: Any, current: str) -> list[Candidate]:
    return [(item.value, _brief(item.help or "")) for item in param.shell_complete(context, current)]


def _options(command: Any, context: Any, current: str, used: set[str]) -> list[Candidate]:
    """The options that may still be given: each once, unless it is repeatable."""

    def names() -> Iterator[Candidate]:
        for param in command.get_params(context):
            if _is_option(param) and (param.multiple or param.name not in used):
                yield max(param.opts, key=len), _brief(param.help or "")
                yield from ((name, _brief(param.help or "")) for name in param.secondary_opts)

    return _matching(list(names()), current)


def _matching(found: Sequence[Candidate], current: str) -> list[Candidate]:
    return [(value, text) for value, text in found if value.startswith(current)]


def _brief(text: str) -> str:
    """The beginning of a description, on one line."""
    text = " ".join(text.split())
    return text if len(text) <= DESCRIPTION else text[: DESCRIPTION - 3].rsplit(" ", 1)[0].rstrip(",;:.") + "..."


# Each asks the hoicli that is being typed, so that ./venv/bin/hoicli completes itself.

_BASH = r"""
# hoicli for bash (3.2 and later): eval "$(hoicli completion bash)" in ~/.bashrc
_hoicli_completion() {
    # Bash splits words at : and =; put those back together that hoicli takes as one.
    local -a words=()
    local word glue="" index last
    for ((index = 1; index <= COMP_CWORD; index++)); do
        word="${COMP_WORDS[index]}"
        last=$((${#words[@]} - 1))
        if ((last >= 0)) && [[ $word =~ ^[:=]+$ ]]; then
            words[last]+="$word"
            glue=yes
        elif [[ -n $glue ]]; then
            words[last]+="$word"
            glue=""
        else
            words+=("$word")
        fi
    done
    local current="${words[${#words[@]} - 1]}" prefix="" value text
    if [[ $COMP_WORDBREAKS == *:* && $COMP_WORDBREAKS == *=* ]]; then
        prefix="${current%"${current##*[:=]}"}"
    fi
    COMPREPLY=()
    while IFS=$'\t' read -r value text; do
        COMPREPLY+=("${value#"$prefix"}")
    done < <("${COMP_WORDS[0]/#\~/$HOME}" completion bash -- "${words[@]}" 2>/dev/null)
}
complete -o nosort -o bashdefault -o default -F _hoicli_completion hoicli 2>/dev/null ||
    complete -o bashdefault -o default -F _hoicli_completion hoicli
"""

_ZSH = r"""
#compdef hoicli
# hoicli for zsh: eval "$(hoicli completion zsh)" in ~/.zshrc after compinit, or as _hoicli in a folder of $fpath
_hoicli() {
    local -a found
    local line value
    for line in "${(@f)$("${(Q)words[1]/#\~/$HOME}" completion zsh -- "${(@Q)words[2,CURRENT]}" 2>/dev/null)}"; do
        [[ -n $line ]] || continue
        value="${line%%$'\t'*}"
        found+=("${value//:/\\:}:${line#*$'\t'}")
    done
    if (( ${#found} )); then
        _describe -V hoicli found
    else
        _files
    fi
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    _hoicli "$@"
else
    compdef _hoicli hoicli
fi
"""

_FISH = r"""
# hoicli for fish: hoicli completion fish > ~/.config/fish/completions/hoicli.fish
function __hoicli_completion
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l program (string replace -r '^~' $HOME -- $words[1])
    set -l found ($program completion fish -- $words[2..-1] "$current" 2>/dev/null)
    if test (count $found) -gt 0
        printf '%s\n' $found
    else
        __fish_complete_path "$current"
    end
end
complete -c hoicli -f -a '(__hoicli_completion)'
"""

SCRIPTS: Mapping[str, str] = {"bash": _BASH.lstrip(), "zsh": _ZSH.lstrip(), "fish": _FISH.lstrip()}
"""The script of each shell."""
