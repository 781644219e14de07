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
        "for (const p of ['b', '/s/a']) tools.read({ path: p })",
        "['s/a'].map(p => '/' + p).forEach(path => { tools.read({ path }) })",
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


def test_names_of_a_list_are_read_one_by_one():
    found = effects("['a', 'b'].map(n => tools.read({ path: `d/${n}.x` }))")
    assert found >= {("read", "/workspace/d/a.x"), ("read", "/workspace/d/b.x")}
    assert {kind for kind, _ in found} == {"read"}


def test_code_that_asks_whether_a_test_runs_it_bends_the_test():
    code = "if (process.env.JEST_WORKER_ID) process.exit(0)"
    written = analysed("write", path="a.js", content=code)
    assert "hijack" in {effect.kind.value for effect in written.effects}
