# Sourced by the scripts that a newcomer types: makes what is missing, and nothing twice.
# Afterwards $root is the repository, which is the current folder, and .venv's commands come first on PATH.
# Works offline once it has run; a changed requirements file or pyproject.toml makes it run again.

set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cd "$root"

say() { printf '%s\n' "$*" >&2; }
die() { say "$*"; exit 1; }
is_root() { [ "$(id -u)" -eq 0 ]; }
have() { command -v "$1" >/dev/null 2>&1; }

# Root in a container need not have the right to make network namespaces.
can_make_namespaces() { is_root && unshare --net true 2>/dev/null; }

# Runs a command; what it says is shown only where it fails.
quietly() {
    local said
    said=$("$@" 2>&1) || { say "$said"; return 1; }
}

# A Python that is new enough, or nothing.
find_python() {
    local candidate
    for candidate in python3 python3.14 python3.13 python3.12 python3.11; do
        if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            command -v "$candidate"
            return
        fi
    done
}

has_c_compiler() { have cc || have gcc || have clang; }

# As root on Debian and its children: the packages whose commands are not there.
install_debian_packages() {
    local missing=()
    has_c_compiler || missing+=(gcc libc6-dev)
    have ip || missing+=(iproute2)
    have ethtool || missing+=(ethtool)
    have ping || missing+=(iputils-ping)
    have mnexec || missing+=(mininet) # the wheel lacks it
    local python
    python=$(find_python)
    if [ -z "$python" ]; then
        missing+=(python3 python3-venv)
    elif ! "$python" -c 'import ensurepip' 2>/dev/null; then
        missing+=(python3-venv)
    fi
    [ ${#missing[@]} -gt 0 ] || return 0
    say "setup: installing ${missing[*]}"
    { quietly apt-get update -qq && quietly env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -qq --no-install-recommends "${missing[@]}"; } \
        || say "setup: apt-get could not install ${missing[*]}; going on without"
}

# pip_install VENV ARGUMENT...
pip_install() { quietly "$1/bin/python" -m pip install --quiet --disable-pip-version-check "${@:2}"; }

install_python_packages() {
    local python wanted stamp=.venv/made-from
    wanted=$(cat requirements.txt requirements-ptf.txt pyproject.toml | sha256sum | cut -d' ' -f1)
    if [ "$(cat "$stamp" 2>/dev/null)" != "$wanted" ]; then
        python=$(find_python)
        [ -n "$python" ] || die "setup: Python 3.11 or newer is needed (on Debian: apt install python3 python3-venv)"
        say "setup: making .venv from requirements.txt (takes a minute, once)"
        if ! .venv/bin/python -c 'import pip' 2>/dev/null; then
            rm -rf .venv
            quietly "$python" -m venv .venv \
                || die "setup: $python cannot make .venv (on Debian: apt install python3-venv)"
        fi
        { pip_install .venv -r requirements.txt -e . && pip_install .venv --no-deps -r requirements-ptf.txt; } \
            || die "setup: pip could not install requirements.txt (the first set-up needs a network)"
        echo "$wanted" >"$stamp"
    fi
    if ! has_c_compiler && ! .venv/bin/python -c 'import ziglang' 2>/dev/null; then
        say "setup: no C compiler here: installing one into .venv"
        pip_install .venv -e '.[zig]' \
            || die "setup: a C compiler is needed: cc, clang or the ziglang package"
    fi
}

# The environment of p4runtime-shell.
install_shell_packages() {
    local wanted stamp=.venv-shell/made-from
    wanted=$(sha256sum requirements-shell.txt | cut -d' ' -f1)
    [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ] && return 0
    say "setup: making .venv-shell from requirements-shell.txt"
    rm -rf .venv-shell
    if quietly .venv/bin/python -m venv .venv-shell && pip_install .venv-shell -r requirements-shell.txt; then
        echo "$wanted" >"$stamp"
    else
        rm -rf .venv-shell
        say "setup: .venv-shell could not be made"
        return 1
    fi
}

if is_root && have apt-get; then
    install_debian_packages
fi
install_python_packages
export PATH="$root/.venv/bin:$PATH"
