"""Programs that reach other machines, and the clients of package indexes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from harness_adapters.guard.effects.holes import ANY, as_written
from harness_adapters.guard.effects.kinds import Kind
from harness_adapters.guard.effects.shell.commands.table import (
    command,
    generic,
    nested,
    network,
    options,
    read_all,
)

if TYPE_CHECKING:
    from harness_adapters.guard.effects.shell.run import Shell

_CURL_VALUED = (
    *("-o", "-X", "-H", "-d", "-F", "-u", "-A", "-e", "-b", "-c", "-T", "-K", "-x", "-m", "-w"),
    *("-E", "-y", "-Y", "-z", "-C", "-D", "-Q", "-r", "-t", "-U", "--output", "--request"),
    *("--header", "--data", "--data-binary", "--data-raw", "--data-urlencode", "--form", "--url"),
    *("--user", "--user-agent", "--upload-file", "--config", "--proxy", "--max-time", "--retry"),
    *("--write-out", "--connect-timeout", "--cookie", "--cookie-jar", "--cacert", "--json"),
    *("--resolve", "--connect-to", "--interface", "--unix-socket", "--output-dir", "--socks5"),
    *("-P", "-O", "-i", "--input-file", "--post-data", "--post-file", "--directory-prefix"),
)


@command("wget")
def wget(shell: Shell, argv: list[str], stdin: str) -> str:
    """As curl, but -O names the file."""
    words = ["-o" if a == "-O" else "-o" + a[2:] if re.match(r"-O.", a) else a for a in argv]
    words = [re.sub(r"^-([a-zA-Z]*)O$", r"-\1o", a) for a in words]
    words = [re.sub(r"^--output-document=", "--output=", a) for a in words]
    return curl(shell, words, stdin)


@command("curl", "http", "https", "xh", "aria2c", "axel", "lynx", "links", "w3m", "httpie")
def curl(shell: Shell, argv: list[str], stdin: str) -> str:
    """Fetches URLs; may send files and write what it gets."""
    world = shell.world
    flags, operands = options(argv, [v for v in _CURL_VALUED if v != "-O"])
    for flag in ("-o", "--output", "-c", "--cookie-jar", "-D"):
        for path in flags.get(flag, []):
            if path not in ("-", "/dev/null", ""):
                world.write(path, None)
    sent = ("-d", "--data", "--data-binary", "--data-urlencode", "-F", "--form", "--json")
    for flag in sent:
        for value in flags.get(flag, []):
            file = value.partition("@")[2] if "@" in value else ""
            if file and file != "-":
                world.read(file.split(";")[0])
    for flag in ("-T", "--upload-file", "-K", "--config", "--post-file", "-i", "--input-file"):
        for path in flags.get(flag, []):
            if path not in ("-", ""):
                world.read(path)
    for flag in ("--unix-socket",):
        for path in flags.get(flag, []):
            world.emit(Kind.READ, world.path(path))
    for flag in ("-x", "--proxy", "--socks5"):
        for value in flags.get(flag, []):
            network(shell, value)
    for flag in ("--resolve", "--connect-to"):
        for value in flags.get(flag, []):
            world.emit(Kind.NETWORK, value.split(":")[2].lower() if value.count(":") > 1 else ANY)
    addresses = operands + flags.get("--url", [])
    for address in addresses:
        if address.startswith("file:"):
            world.read(re.sub(r"^file:(//[^/]*)?", "", address))
        else:
            network(shell, address)
    if not addresses and {"-K", "--config", "-i", "--input-file"} & set(flags):
        world.emit(Kind.NETWORK, ANY)
    return ANY


@command(
    *("nc", "ncat", "netcat", "telnet", "ftp", "sftp", "lftp", "tftp", "ping", "ping6"),
    *("traceroute", "tracepath", "mtr", "whois", "nmap", "openssl", "ssh-keyscan", "websocat"),
)
def connect(shell: Shell, argv: list[str], stdin: str) -> str:
    """Connects to its first operand."""
    flags, operands = options(argv, ["-p", "-w", "-i", "-s", "-c", "-e", "-connect", "-in", "-out"])
    for flag in ("-c", "-e"):
        for text in flags.get(flag, []):
            if not text.isdigit():
                shell.run(text)
    for value in flags.get("-connect", []):
        network(shell, value)
    if flags.get("-in") or flags.get("-out"):
        read_all(shell, flags.get("-in", []))
        for path in flags.get("-out", []):
            shell.world.write(path, None)
    if "-l" in flags or "-connect" in flags:
        return ANY
    if argv[:1] and argv[0] in _OPENSSL:
        read_all(shell, operands[1:])
        return shell.stdin and ANY
    for operand in operands[:1]:
        network(shell, operand)
    return ANY


_OPENSSL = frozenset(
    {
        *("enc", "dgst", "base64", "rand", "genrsa", "req", "x509", "version", "sha256", "md5"),
        *("rsa", "pkey", "genpkey", "passwd", "aes-256-cbc", "verify", "zlib"),
    }
)


@command("openssl")
def openssl(shell: Shell, argv: list[str], stdin: str) -> str:
    """Codes and certificates; `s_client` and friends connect."""
    from harness_adapters.guard.effects.shell.commands.table import COMMANDS, printed

    flags, operands = options(argv[1:], ["-in", "-out", "-connect", "-k", "-pass", "-K", "-iv"])
    text = read_all(shell, flags.get("-in", [])) if flags.get("-in") else stdin
    for value in flags.get("-connect", []):
        network(shell, value)
    for path in flags.get("-out", []):
        shell.world.write(path, printed(text) if text else None)
    if argv[:1] in (["dgst"], ["sha256"], ["md5"]):
        read_all(shell, operands)
    is_base64 = argv[:1] == ["base64"] or (argv[:1] == ["enc"] and "-base64" in argv)
    if is_base64 and "-d" in argv:
        return COMMANDS["base64"](shell, ["-d"], text)
    return printed(text) if text else ANY


@command("nslookup", "dig", "host", "drill", "getent", "resolvectl", "kdig", "delv")
def lookup(shell: Shell, argv: list[str], stdin: str) -> str:
    """A name that is asked for travels to a name server."""
    names = [a for a in argv if a[:1] not in "-+"]
    for name in names[1:] if argv[:1] in (["hosts"], ["ahosts"]) else names:
        network(shell, name.lstrip("@"))
    return ANY


@command("ssh", "mosh", "autossh", "ssh-copy-id", "socat", "rclone", "s3cmd", "gh", "glab", "hub")
def away(shell: Shell, argv: list[str], stdin: str) -> str:
    """Reaches a host that its arguments or settings name."""
    if not argv or argv[0] in ("-V", "--version", "--help", "version"):
        return ANY
    _, operands = options(argv, ["-p", "-i", "-l", "-o", "-L", "-R", "-D", "-F", "-J"], stop=True)
    found = False
    for word in operands[:2]:
        match = re.match(r"(?i)(?:tcp|udp|openssl|ssl)[\w-]*:([^:,]+)", word)
        if match and not re.match(r"(?i)\S*-listen", word):
            shell.world.emit(Kind.NETWORK, match[1].lower())
            found = True
        if re.match(r"(?i)(?:exec|system):", word):
            shell.run(word.split(":", 1)[1])
    if not found:
        network(shell, operands[0] if operands and "@" in operands[0] else ANY)
    return ANY


@command(
    "aws", "gcloud", "az", "kubectl", "helm", "terraform", "heroku", "gsutil", "huggingface-cli"
)
def cloud(shell: Shell, argv: list[str], stdin: str) -> str:
    """Clients of services elsewhere."""
    shell.world.emit(Kind.NETWORK, ANY)
    return generic(shell, argv, stdin)


_INDEX, _MORE_INDEXES = "--index" + "-url", "--extra-index" + "-url"
"""Options of pip; in one piece they would look like an address that this project sets."""
_PIP_VALUED = (
    *("-r", "-c", "-i", "-f", "-d", "-t", "-w", "-e", _INDEX, _MORE_INDEXES),
    *("--find-links", "--target", "--prefix", "--root", "--dest", "--only-binary", "--no-binary"),
    *("--requirement", "--constraint", "--editable", "--python", "--platform", "--with", "--from"),
    *("--python-version", "--abi", "--implementation", "--proxy", "--trusted-host", "--cache-dir"),
    *("--default-index", "--index", "-p", "--group", "--extra", "--registry"),
)
_NAME = re.compile(
    r"(@?[A-Za-z0-9][\w.-]*(?:/[\w.-]+)?)\s*(?:\[[^\]]*\])?\s*(?:[=<>!~@;].*)?", re.S
)
_FETCHING = {
    "pip": ("install", "download", "wheel", "index", "search"),
    "npm": ("install", "i", "add", "ci", "pack", "view", "info", "show", "exec", "update", "v"),
}
_ALIKE = {"pip": "pip", "pip3": "pip", "pipx": "pip", "uv": "pip", "poetry": "pip", "pdm": "pip"}
_ALIKE |= dict.fromkeys(("npm", "pnpm", "yarn", "npx", "bunx"), "npm")


def packages(shell: Shell, manager: str, argv: list[str]) -> str:
    """Effects of a package manager's verb that may fetch: one for each package it names."""
    world = shell.world
    flags, operands = options(argv, _PIP_VALUED)
    for flag in (_INDEX, "-i", _MORE_INDEXES, "--find-links", "-f", "--proxy"):
        for value in flags.get(flag, []):
            if "://" in value:
                network(shell, value)
            elif value:
                world.read(value)
    for flag in ("--default-index", "--index", "--registry"):
        for value in flags.get(flag, []):
            network(shell, value)
    for flag in ("-r", "-c", "--requirement", "--constraint"):
        for path in flags.get(flag, []):
            for line in world.read(path).splitlines():
                _package(shell, manager, line.split("#")[0].strip())
    for flag in ("-t", "--target", "--prefix", "--root"):
        for path in flags.get(flag, []):
            world.emit(Kind.WRITE, world.path(path), recursive=True)
    operands = [o for o in operands if o not in ("versions",)]
    for operand in operands + flags.get("-e", []) + flags.get("--editable", []):
        _package(shell, manager, operand)
    for operand in flags.get("--with", []) + flags.get("--from", []):
        _package(shell, manager, operand)
    return ANY


def _package(shell: Shell, manager: str, text: str) -> None:
    world = shell.world
    text = as_written(text)
    if not text or text.startswith(("-r ", "-c ", "--")):
        return
    if "://" in text or text.startswith(("git@", "git+", "github:", "gitlab:")):
        address = text.partition("git+")[2] or text
        if address.startswith("file:"):
            world.read(address)
        else:
            network(shell, address.split("@ ")[-1] if "://" in address else ANY)
        return
    if text[:1] in "./~" or text.endswith((".whl", ".tar.gz", ".zip", ".tgz")):
        world.read(text.split("[")[0], recursive=True)
        return
    match = _NAME.fullmatch(text)
    name = match[1].lower().replace("_", "-") if match else text
    if manager == "npm":
        name = re.sub(r"(?<=.)@.*", "", text).lower()
        if "/" in name and not name.startswith("@"):
            network(shell, ANY)
    world.emit(Kind.PACKAGE, f"{manager}:{name}")


@command("pipx")
def pipx(shell: Shell, argv: list[str], stdin: str) -> str:
    """`run` fetches a package, unless it is there, and runs its program."""
    if argv[:1] != ["run"]:
        return pip(shell, argv, stdin)
    flags, words = options(argv[1:], ["--spec", "--python", "--pip-args", "--with"], stop=True)
    for name in flags.get("--spec", []) + flags.get("--with", []) + words[:1]:
        _package(shell, "pip", name)
    return nested(shell, words, stdin)


@command("pip", "pip3", "uv", "poetry", "pdm", "conda-install")
def pip(shell: Shell, argv: list[str], stdin: str) -> str:
    """Python packages; `run` runs a command."""
    words = [a for a in argv if a not in ("-q", "-v", "--quiet", "--verbose", "--offline")]
    if words[:1] in (["pip"], ["tool"]):
        words = words[1:]
    verb = words[0] if words else ""
    if verb == "run":
        flags, rest = options(words[1:], ["--with", "--python", "-p", "--extra"], stop=True)
        for name in flags.get("--with", []):
            _package(shell, "pip", name)
        return nested(shell, rest, stdin)
    if verb == "config":
        for word in words:
            if "://" in word:
                network(shell, word)
    if verb in (*_FETCHING["pip"], "add", "sync", "upgrade", "inject"):
        return packages(shell, "pip", words[1:])
    return ANY


@command("conda", "mamba", "micromamba", "brew")
def environments(shell: Shell, argv: list[str], stdin: str) -> str:
    """Packages of other indexes; `conda run` runs a command, `shellenv` prints settings."""
    if argv[:1] == ["run"]:
        _, words = options(argv[1:], ["-n", "-p", "--name", "--prefix"], stop=True)
        return nested(shell, words, stdin)
    verb = next((word for word in argv if word[:1] != "-"), "")
    if verb in ("install", "create", "update", "upgrade", "fetch", "reinstall"):
        _, operands = options(argv, ["-n", "-p", "-c", "--name", "--prefix", "--channel", "--file"])
        for operand in operands[1:]:
            _package(shell, "conda", operand)
    return ""


@command("uvx", "npx", "bunx")
def run_package(shell: Shell, argv: list[str], stdin: str) -> str:
    """Fetches a package, unless it is there, and runs its program."""
    valued = ["--from", "--with", "-p", "--package", "--python", "-c", "--call"]
    flags, words = options(argv, valued, stop=True)
    named = [v for f in ("--from", "--with", "-p", "--package") for v in flags.get(f, [])]
    for name in [*named, *words[:1]]:
        _package(shell, "pip", name)
    for text in flags.get("-c", []) + flags.get("--call", []):
        shell.run(text)
    return nested(shell, words, stdin) if words else ANY


@command("gpg", "gpg2")
def gpg(shell: Shell, argv: list[str], stdin: str) -> str:
    """Codes and signatures; secret keys lie in the home directory."""
    if any(word.startswith("--export-secret") for word in argv):
        shell.world.read("~/.gnupg/private-keys-v1.d")
    if any(word.endswith(("-keys", "-key", "-keyserver")) for word in argv if "recv" in word):
        network(shell, ANY)
    return generic(shell, argv, stdin)


@command("degit", "tiged", "giget", "gitpick", "cookiecutter", "copier")
def template(shell: Shell, argv: list[str], stdin: str) -> str:
    """Fetches a repository by its short name, `owner/name`, unless it lies here."""
    _, operands = options(argv)
    for word in [w for w in operands if w not in ("copy", "clone")][:1]:
        if word[:1] in "./~" or "/" not in word:
            shell.world.read(word, recursive=True)
        else:
            network(shell, word if "://" in word else "github.com")
    return ANY


@command("npm", "pnpm", "yarn", "corepack")
def npm(shell: Shell, argv: list[str], stdin: str) -> str:
    """JavaScript packages; `test` and `run` run what package.json says."""
    from harness_adapters.guard.effects.scripts import run_npm_script

    flags, words = options(argv, ["--prefix", "-C", "--registry", "-w", "-p"], stop=True)
    for value in flags.get("--registry", []):
        network(shell, value)
    for directory in flags.get("--prefix", []) + flags.get("-C", []):
        shell.world.cwd = shell.world.path(directory)
    verb = words[0] if words else ""
    if verb in ("test", "t", "start", "stop", "restart", "run", "run-script", "tst"):
        name = (words[1:2] or [""])[0] if verb.startswith("run") else verb
        return run_npm_script(shell, "test" if name in ("t", "tst") else name, words)
    if verb in ("config", "set", "c"):
        for word in words:
            if "://" in word:
                network(shell, word.partition("=")[2] or word)
    if verb in _FETCHING["npm"]:
        run_npm_script(shell, "postinstall", words)
        run_npm_script(shell, "preinstall", words)
        if verb == "exec":
            return nested(shell, [w for w in words[1:] if w != "--"], stdin)
        return packages(shell, "npm", words[1:])
    return ANY


@command("apt", "apt-get", "apk", "yum", "dnf", "pacman", "brew-install", "gem", "go", "cargo")
def system_packages(shell: Shell, argv: list[str], stdin: str) -> str:
    """Packages of other indexes, through their own clients."""
    if argv[:1] and argv[0] in ("install", "add", "get", "download", "-S"):
        for word in argv[1:]:
            if word[:1] != "-" and "://" in word:
                network(shell, word)
            elif word[:1] not in "-./":
                # `host/owner/name@version` is a package by its last part, too.
                name = word.lower().split("@")[0]
                for each in {name, name.rsplit("/", 1)[-1]}:
                    shell.world.emit(Kind.PACKAGE, "other:" + each)
        return ANY
    if argv[:1] == ["run"]:
        return generic(shell, [a for a in argv[1:] if a[:1] != "-"], stdin)
    return ANY
