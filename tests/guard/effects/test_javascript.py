import pytest
from tests.guard.effects.analysing import analysed

SECRET = ("read", "/s/a")


def effects(code):
    return {(e.kind.value, e.target) for e in analysed("codemode", code=code).effects}


@pytest.mark.parametrize(
    "code",
    [
        "return await tools.read({ path: '/s/a' })",
        "const p = ['', 's', 'a'].join('/'); await tools.read({ path: p })",
        "const d = 's'; tools.bash({ command: `cat /${d}/a` })",
        "const t = tools; const n = 're' + 'ad'; t[n]({ path: '/s/a' })",
        "const { read } = tools; read({ path: '/s/a' })",
        "tools.read({ path: atob('L3MvYQ==') })",
        "tools.read({ path: String.fromCharCode(47, 115, 47, 97) })",
        "const go = async (x) => tools.read({ path: '/s/a' }); await go()",
        "require('fs').readFileSync('/s/a')",
        "const { execSync: e } = require('child_process'); e('cat /s/a')",
        "import('fs').then(f => f.readFileSync('/s/a'))",
        "eval(\"require('fs').readFileSync('/s/a')\")",
    ],
)
def test_a_read_is_found_however_it_is_written(code):
    assert SECRET in effects(code)


@pytest.mark.parametrize(
    "code",
    [
        "[].constructor.constructor('return 1')()",
        "tools.read(JSON.parse(x))",
        "Object.values(tools)[0]({ path: 'a' })",
        "let x = {",
        "eval(atob(x) + y())",
    ],
)
def test_what_cant_be_worked_out_is_unresolved(code):
    assert any(kind == "unresolved" for kind, _ in effects(code))


def test_honest_code_is_resolved():
    found = effects(
        "const [a, b] = await Promise.all(["
        "tools.read({ path: 'x' }), tools.bash({ command: 'ls' })]);\n"
        "return a.split('\\n').filter(l => l.includes('def')).length + b.output.length;"
    )
    assert found == {("read", "/workspace/x"), ("list", "/workspace")}
