import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.guard.effects.analysing import analysed, effects

from harness_adapters.guard.effects import Kind
from harness_adapters.guard.effects.holes import ANY, ONE, OPAQUE, STAR

SECRET = ("read", "/s/a")


@pytest.mark.parametrize(
    ("command", "effect"),
    [
        ("cat a", ("read", "/workspace/a")),
        ("ls d", ("list", "/workspace/d")),
        ("echo x > a", ("write", "/workspace/a")),
        ("rm a", ("delete", "/workspace/a")),
        ("mv a /b", ("delete", "/workspace/a")),
        ("mv a /b.c", ("write", "/b.c")),
        ("./run.sh", ("execute", "/workspace/run.sh")),
        ("curl https://user@example.org:8443/x", ("network", "example.org")),
        ("pip install 'Some_Thing[extra]>=2'", ("package", "pip:some-thing")),
        ("git log --all", ("git", "future")),
        ("git reflog", ("git", "reflog")),
        ("git fetch", ("git", "remote")),
        ("git fsck", ("git", "objects")),
        ("export A=b", ("environment", "A=b")),
        ("unset A", ("environment", "A")),
        ("env", ("environment", "<all>")),
        ("kill 7", ("process", "kill:7")),
        ("kill $(ps -o ppid= -p $$)", ("process", "kill-parent")),
        ("npx degit a/b", ("network", "github.com")),
        ("echo /s/*", ("list", "/s")),
        ("cat ~bin/../s/a", ("read", f"{ANY}/s/a")),
        ("unzip a.zip 'd/*' -d b", ("write", f"/workspace/b/d/{ANY}")),
        ("for f in /s/*; do :; done", ("list", "/s")),
        ("CDPATH=/ ; cd s", ("unresolved", "path")),
        ("kill $(ps aux | grep '[x]y' | awk '{print $2}')", ("process", "kill-line:[x]y")),
        ("ps aux | awk '/xy/ {print $2}' | xargs kill", ("process", "kill-line:xy")),
        ("gpg --export-secret-keys", ("read", "/home/agent/.gnupg/private-keys-v1.d")),
        ("pip config set global.index-url http://a.b/c", ("network", "a.b")),
        ("locate x | xargs cat", ("read", f"/{ANY}x{ANY}")),
        ("conda install -c forge x", ("package", "conda:x")),
        ("cp -r a/. b", ("write", f"/workspace/b/{ANY}")),
        ("cp -rT a b", ("write", f"/workspace/b/{ANY}")),
        ("rsync -a a/ b", ("write", f"/workspace/b/{ANY}")),
        ("pkill -f x", ("process", "kill-line:x")),
        ("crontab x", ("schedule", "cron")),
        ("nsenter -t 1 x", ("escape", "namespace")),
        ("eval $(cat x)", ("unresolved", "code")),
        ("if then", ("unresolved", "syntax")),
    ],
)
def test_every_kind_of_effect(command, effect):
    assert effect in effects(command)


@pytest.mark.parametrize(
    "command",
    [
        "cat /s/a",
        "cat /workspace/../s/./a",
        "cd / && cat s/a",
        "cd /s; cat a",
        "(cd /; cat s/a)",
        "make -f - <<'E'\nx:\n\tcat /s/a\nE",
        "declare -A d=([x]=/b [y]=/s/a); cat ${d[y]}",
        "d[1]=/s/a; d[0]=b; cat ${d[1]}",
        'cat $(awk \'BEGIN{print "/s" "/a"}\')',
        "cat $(awk -v d=/s/a 'BEGIN{print d}')",
        'cat $(node -p \'"/s" + "/a"\')',
        'cat $(node -e \'console.log(["", "s", "a"].join("/"))\')',
        "xmllint --format /s/a",
        "echo '#include \"/s/a\"' | gcc -E -",
        "git show HEAD:../s/a",
        "scp -r localhost:/s/a b",
        "d=(/s); d+=(a); cat ${d[0]}/${d[1]}",
        "cat ~root/../s/a",
        "yes /s/a | head -1 | xargs cat",
        "PS4='$(cat /s/a)'; set -x; true",
        "PROMPT_COMMAND='cat /s/a' bash -i",
        "git difftool -y -x 'cat /s/a' HEAD~1",
        "HOME=/s; cat ~/a",
        "HOME=/; cd; cat s/a",
        "cat > b <<< x; cat /s/a",
        "cat 2>/dev/null <<< x /s/a",
        "cat 2>/dev/null /s/a",
        "cat 2>&1 /s/a | head",
        "ls | head 2>/dev/null -5 /s/a",
        "true && cat > b -- '/s/a'",
        "cat <<E /s/a\nE",
        "wc --files0-from=<(printf '/s/a\\0')",
        "cat /{x,s}/a",
        "cat $'/\\x73/\\141'",
        'd=/s; cat "$d"/a',
        "d=s; cat /${d}/a",
        "d=xs; cat /${d#x}/a",
        "d=st; cat /${d%t}/a",
        "d=t; cat /${d/t/s}/a",
        "d=xsx; cat /${d:1:1}/a",
        "d=S; cat /${d,,}/a",
        "n=d; d=s; cat /${!n}/a",
        "cat ${unset:-/s/a}",
        "cat$IFS/s/a",
        "IFS=,; x=cat,/s/a; $x",
        "set -- /s/a; cat $1",
        'f() { cat "$1"; }; f /s/a',
        "for d in t s; do cat /$d/a; done",
        "if x; then d=/s; else d=/t; fi; cat $d/a",
        "case x in a) d=/s;; esac; cat $d/a",
        "d=/; while x; do cat ${d}a; d=/s/; done",
        "read -r a b <<< 'cat /s/a'; $a $b",
        "cat <<< x /s/a",
        "cat < /s/a",
        "exec 3</s/a",
        "echo $(</s/a)",
        "diff <(cat /s/a) x",
        "echo /s/a | xargs cat",
        "echo /s/a | while read f; do cat $f; done",
        "echo cat /s/a | sh",
        "sh <<'E'\ncat /s/a\nE",
        "bash -c 'cat /s/a'",
        "bash -c 'cat $0' /s/a",
        "eval 'cat /s/a'",
        "source <(echo cat /s/a)",
        "echo Y2F0IC9zL2E= | base64 -d | sh",
        "printf '%s' 636174202f732f61 | xxd -r -p | sh",
        "echo 'a/s/ tac' | rev | sh",
        "echo 'png /f/n' | tr a-z n-za-m | sed 's/cat/cat/' | sh",
        "env -S 'cat /s/a'",
        "timeout -k 3 5 nice -n 2 env A=b cat /s/a",
        "tar -C / -cf x s/a",
        "find /s/a -exec cat {} \\;",
        "trap 'cat /s/a' EXIT",
        "cat /proc/self/root/s/a",
        "ln -s /s l; cat l/a",
        "echo 'cat /s/a' > x; chmod +x x; ./x",
        "printf 'x:\\n\\tcat /s/a\\n' > Makefile; make",
        'echo \'{"scripts": {"go": "cat /s/a"}}\' > package.json; npm run go',
        "printf '#!/usr/bin/env python3\\nopen(\"/s/a\")\\n' > y; ./y",
        "python3 -c 'open(\"/s/a\")'",
        'node -e \'require("fs").readFileSync("/s/a")\'',
        "cat /s/a | cat",
        "! cat /s/a",
        "true && false || cat /s/a &",
        "cat\\\n /s/a",
    ],
)
def test_a_read_is_found_however_it_is_written(command):
    found = effects(command)
    assert SECRET in found or ("unresolved", "code") in found
    if "tr a-z" not in command:
        assert SECRET in found


@pytest.mark.parametrize(
    ("command", "target"),
    [
        ("cat /s*/a", f"/s{STAR}/a"),
        ("cat /?/a", f"/{ONE}/a"),
        ("cat '/s*/a'", "/s*/a"),
        ("cat /s\\*/a", "/s*/a"),
        ("cat x/$(date)", f"/workspace/x/{ANY}"),
        ("cat /$(openssl enc -d <<< abc)", f"/{OPAQUE}"),
    ],
)
def test_what_is_unknown_stays_a_hole_in_the_path(command, target):
    assert ("read", target) in effects(command)


@pytest.mark.parametrize(
    ("command", "path"),
    [
        ("sed -i s/a/b/ t", "/workspace/t"),
        ("perl -pi -e s/a/b/ t", "/workspace/t"),
        ("truncate -s 0 t", "/workspace/t"),
        ("printf 'w\\nq\\n' | ed t", "/workspace/t"),
        ("chmod 000 t", "/workspace/t"),
        ("patch -p1 <<'P'\n--- a/t\n+++ b/t\n@@ -1 +1 @@\n-a\n+b\nP", "/workspace/t"),
        ("git checkout HEAD~2 -- t", "/workspace/t"),
    ],
)
def test_changing_in_place_says_that_the_file_was_there(command, path):
    found = analysed("bash", command=command).effects
    assert any(e.kind is Kind.WRITE and e.target == path and e.existing for e in found)


@pytest.mark.parametrize(
    "command",
    [
        "sh <<'E'\n" + "# nothing\n" * 900 + "cat /s/a\nE",
        "sh <<-'E'\n" + "\t# nothing\n" * 900 + "\tcat /s/a\n\tE",
        "cat > x <<'E'\n" + "# nothing\n" * 900 + "cat /s/a\nE\nsh x",
        "cat <<'E' | sh\n" + "# nothing\n" * 900 + "cat /s/a\nE\n",
        "echo \"<<'E'\n" + "x\n" * 3000 + '$(cat /s/a)\nE\n"',
        "cat <<'E'\n" + "x\n" * 3000 + "E\ncat /s/a",
        "cat <<E\n<<'F'\n" + "x\n" * 3000 + "$(cat /s/a)\nF\nE",
        "eval true; sh <<'E'\n" + "# nothing\n" * 900 + "cat /s/a\nE",
        "f() { sh <<'E'\n" + "# nothing\n" * 900 + "cat /s/a\nE\n}\neval true; f",
    ],
)
def test_long_here_documents_hide_nothing(command):
    assert SECRET in effects(command)


def test_ten_thousand_commands_are_judged_to_the_last():
    assert SECRET in effects("true; " * 10_000 + "cat /s/a")


def test_a_loop_beyond_the_budget_is_not_let_through():
    from harness_adapters.guard.effects.world import OutOfBudget

    with pytest.raises(OutOfBudget):
        effects("for i in {1..400}; do for j in {1..400}; do true; done; done; cat /s/a")


@pytest.mark.parametrize(
    "command",
    ["echo /s/a", "printf '%s' /s/a", "grep /s/a b", "x=/s/a", "# cat /s/a", "git commit -m /s/a"],
)
def test_words_that_are_only_words_are_no_reads(command):
    assert SECRET not in effects(command)


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "command",
    [
        "echo " + "a" * 60 + "b | sed -E 's/(a+)+$/x/'",
        "echo " + "a" * 2000 + " | sed -E 's/.*.*.*.*.*x/y/'",
        "x=" + "a" * 60_000 + "; echo ${x##*b}",
        "x=" + "a" * 60_000 + "; echo ${x//a/" + "b" * 60_000 + "}",
        "pkill -f '(.+)+x'",
        "x=aaaa; for i in {1..60}; do x=$x$x; done; echo $x",
        "x=" + "a" * 60_000 + "; echo " + "$x" * 2000,
    ],
)
def test_nothing_in_a_call_stalls_the_analysis(command):
    effects(command)


def test_a_subshell_keeps_its_directory_to_itself():
    assert effects("(cd /s); cat a") >= {("read", "/workspace/a")}
    assert SECRET not in effects("(cd /s); cat a")


@given(st.text(alphabet="abcs/.*'\"$(){}|;&<>\\ \n~[]!#=`0", max_size=40))
def test_any_text_is_analysed_without_an_error(command):
    effects(command)


@given(st.lists(st.sampled_from("s./"), min_size=1, max_size=12).map("".join))
def test_however_a_path_is_dotted_it_is_the_path_that_it_is(path):
    import posixpath

    wanted = posixpath.normpath("/s/" + path)
    wanted = "/" + wanted.lstrip("/")
    assert ("read", wanted) in effects(f"cat '/s/{path}'")


@pytest.mark.parametrize(
    "number",
    [
        "$(grep -n x a | head -1 | cut -d: -f1)",
        "$(grep -n x a | awk -F: '{print $1}')",
        "$((n + 5))",
    ],
)
def test_a_number_of_a_line_is_no_code(number):
    assert not {kind for kind, _ in effects(f'n=7; sed -n "{number},+3p" b')} - {
        "read",
        "environment",
    }
    assert ("unresolved", "code") in effects('sed -n "$(grep x a)p" b')
    assert ("read", "/s/a") in effects(f'sed "{number}r /s/a" b')


@pytest.mark.parametrize("command", ["docker compose ps", "docker compose logs web"])
def test_a_look_at_containers_of_the_project_is_no_escape(command):
    assert ("escape", "namespace") not in effects(command)


@pytest.mark.parametrize(
    "command",
    [
        "docker compose exec web sh",
        "docker compose up",
        "docker compose -f x.yml ps",
        "docker compose",
    ],
)
def test_other_verbs_of_compose_lead_out(command):
    assert ("escape", "namespace") in effects(command)
