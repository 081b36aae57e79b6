"""Shell completion: what may come next on a command line, and the scripts that ask for it.

`hoicli completion SHELL` prints a script, which calls `hoicli completion SHELL -- WORDS...` whenever Tab is pressed:
the words after `hoicli` up to the cursor, the last one incomplete and possibly empty. The answer is a line a candidate,
value and description with a tab between. No answer leaves the shell to complete file names.

The candidates are typer's. The scripts are not: typer's for bash takes wordnet:wup and --protocol=qpic for several
words, as bash cuts them at : and =, and none of typer's names files where nothing is known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from typer._completion_classes import BashComplete  # typer's answers, which are the same for all shells

DESCRIPTION = 70
"""Columns of a description: a menu is one line an entry."""


def candidates(group: Any, words: Sequence[str]) -> list[tuple[str, str]]:
    """What the last of `words` may become: (the whole word, what it means).

    group: the typer group of the commands. words: those after `hoicli`, at least one. A word that is no command, or an
    option that takes anything (a file, a number), has no candidates.
    """
    *before, current = words
    commands = group.list_commands(None)
    if before in ([], ["help"]) and not current.startswith("-"):  # typer would import every command
        return [(name, _brief(group.summary(name))) for name in commands if name.startswith(current)]
    if before and before[0] not in commands:
        return []
    found = BashComplete(group, {}, "hoicli", "").get_completions(before, current)
    option, equals, _ = current.partition("=")
    joined = option + equals if equals and option.startswith("--") else ""  # --protocol=q
    return [(joined + item.value, _brief(item.help or "")) for item in found]


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
