import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.guard.effects.analysing import analysed

from harness_adapters.guard.effects.holes import ANY

SECRET = ("read", "/s/a")


def effects(code, tool="execute_code", **more):
    world = analysed(tool, code=code, **more)
    return {(effect.kind.value, effect.target) for effect in world.effects}


@pytest.mark.parametrize(
    "code",
    [
        "try:\n    raise ValueError('/s/a')\nexcept ValueError as e:\n    open(str(e))",
        "@dataclass\nclass A:\n    d: str\n    n: str = 'b'\nopen(A('/s/a').d)",
        "from functools import partial\npartial(open, '/s/a')()",
        "from string import Template\nopen(Template('/$d/a').substitute(d='s'))",
        "import zipfile\nzipfile.ZipFile('x', 'w').write('/s/a')",
        "import x\nwith x.Pool() as p:\n    p.map(open, ['/s/a'])",
        "import x\nwith x.Pool() as p:\n    p.submit(open, '/s/a')",
        "import threading\nthreading.Thread(target=open, args=('/s/a',)).start()",
        "class A:\n    @property\n    def p(self):\n        return '/s/a'\nopen(A().p)",
        "import x\nx.connect().run('cat /s/a')",
        "open('/s/a')",
        "open('/'+'s'+'/a')",
        "open('/%s/a' % 's')",
        "open('/{}/a'.format('s'))",
        "d = 's'\nopen(f'/{d}/a')",
        "open('/'.join(['', 's', 'a']))",
        "open('a/s/'[::-1])",
        "open(chr(47) + 's/a')",
        "open(bytes([47, 115, 47, 97]).decode())",
        "open(bytes.fromhex('2f732f61'))",
        "import base64\nopen(base64.b64decode('L3MvYQ=='))",
        "import codecs\nopen(codecs.decode('/f/n', 'rot13'))",
        "open(''.join(map(chr, [47, 115, 47, 97])))",
        "open(''.join(c for c in '/xsx/xa' if c != 'x'))",
        "from pathlib import Path\n(Path('/') / 's' / 'a').read_text()",
        "from pathlib import Path as P\nP('/s').joinpath('a').open()",
        "import os\nopen(os.path.join('/', 's', 'a'))",
        "import os\nos.chdir('/s')\nopen('a')",
        "import os\nos.system('cat /s/a')",
        "import subprocess as p\np.run(['cat', '/s/a'])",
        "import subprocess\nsubprocess.run('cat a', shell=True, cwd='/s')",
        "from subprocess import *\ncheck_output('cat /s/a', shell=True)",
        "__import__('os').popen('cat /s/a')",
        "getattr(__import__('o' + 's'), 'sys' + 'tem')('cat /s/a')",
        "import sys, os\nsys.modules['os'].system('cat /s/a')",
        "import os\nos.__dict__['system']('cat /s/a')",
        "exec(\"open('/s/a')\")",
        "eval(compile(\"open('/s/a')\", '', 'eval'))",
        "def f(p):\n    return open(p)\nf('/s/a')",
        "f = lambda p: open(p)\nf('/s/a')",
        "class C:\n    def __init__(self, d):\n        self.d = d\n    def go(self):\n"
        "        open(self.d + '/a')\nC('/s').go()",
        "for d in ['t', 's']:\n    open('/' + d + '/a')",
        "s = ''\nfor c in '/s/a':\n    s += c\nopen(s)",
        "if x:\n    d = '/s'\nelse:\n    d = '/t'\nopen(d + '/a')",
        "import shutil\nshutil.copy('/s/a', 'b')",
        "import pandas as pd\npd.read_csv('/s/a')",
        "import unknown\nunknown.thing('/s/a')",
        "import linecache\nlinecache.getlines('/s/a')",
        "o = open\no('/s/a')",
        "async def main():\n    open('/s/a')\n",
        "try:\n    pass\nexcept Exception:\n    pass\nfinally:\n    open('/s/a')",
        "with open('/s/a') as f:\n    pass",
        "x = [open(p) for p in ['/s/a']]",
        "from hermes_tools import terminal\nterminal('cat /s/a')",
        "import hermes_tools as h\nh.read_file(path='/s/a')",
    ],
)
def test_a_read_is_found_however_it_is_written(code):
    assert SECRET in effects(code)


@pytest.mark.parametrize(
    ("code", "effect"),
    [
        ("open('a', 'w')", ("write", "/workspace/a")),
        ("import os\nos.remove('a')", ("delete", "/workspace/a")),
        ("import shutil\nshutil.rmtree('d')", ("delete", "/workspace/d")),
        ("import os\nos.listdir('d')", ("list", "/workspace/d")),
        ("import requests\nrequests.get('http://x.y/z')", ("network", "x.y")),
        ("import socket\nsocket.create_connection(('x.y', 1))", ("network", "x.y")),
        ("import os\nprint(os.environ)", ("environment", "<all>")),
        ("import os\nos.environ['A'] = 'b'", ("environment", "A=b")),
        ("import os\nos.kill(1, 9)", ("process", "kill:1")),
        ("import os\nos.kill(os.getppid(), 9)", ("process", "kill-parent")),
        ("import git\ngit.Repo('.').git.log('--all')", ("git", "future")),
        ("import os\nprint({**os.environ})", ("environment", "<all>")),
        ("import git\ngit.Repo('.').remotes", ("git", "future")),
        ("import pygit2\npygit2.Repository('.')", ("git", "objects")),
        ("import x\nwith x.Client() as c:\n    c.get('https://a.b/c')", ("network", "a.b")),
        ("import shutil\nshutil.unpack_archive('x', 'd')", ("write", f"/workspace/d/{ANY}")),
        (
            "import pytest\nopen(pytest.__file__, 'w')",
            ("write", "/usr/lib/python3/site-packages/pytest/__init__.py"),
        ),
        ("import inspect\ninspect.stack()", ("hijack", "frames")),
        ("import unittest\nunittest.TestCase.assertEqual = None", ("hijack", "patch")),
        ("class A:\n    def __eq__(self, o):\n        return True", ("hijack", "equal")),
        ("exec(input())", ("unresolved", "code")),
        ("().__class__.__base__.__subclasses__()[9]()", ("unresolved", "code")),
        ("import pickle\npickle.loads(b'x')", ("unresolved", "code")),
        ("from hermes_tools import new_tool\nnew_tool()", ("unresolved", "shape")),
        ("def (", ("unresolved", "syntax")),
    ],
)
def test_other_effects(code, effect):
    assert effect in effects(code)


@pytest.mark.parametrize(
    "code",
    [
        "print('/s/a')",
        "x = '/s/a'.split('/')",
        "import re\nre.match('/s/a', 'b')",
        "import argparse\nargparse.ArgumentParser().add_argument('--x', default='/s/a')",
    ],
)
def test_words_that_are_only_words_are_no_reads(code):
    assert SECRET not in effects(code)


def test_a_program_reads_its_arguments_and_its_input():
    found = analysed(
        "bash", command="printf 'import sys\\nopen(sys.argv[1])' > p.py; python3 p.py /s/a"
    ).effects
    assert SECRET in {(e.kind.value, e.target) for e in found}
    found = analysed("bash", command="echo /s/a | python3 -c 'open(input())'").effects
    assert SECRET in {(e.kind.value, e.target) for e in found}


def test_a_library_that_is_only_written_counts_as_later():
    world = analysed("write", path="m.py", content="def f():\n    return open('/s/a')\n")
    assert {(e.target, e.deferred) for e in world.effects if e.kind.value == "read"} == {
        ("/s/a", True)
    }


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "code",
    [
        "x = bytes(10**10)",
        "x = 'aa'\nfor i in range(60):\n    x = f'{x}{x}'",
        "x = 'aa' + input()\nfor i in range(60):\n    x += x",
        "x = ('%s' * 2**16) % (('a' * 2**19,) * 2**16)",
        "x = format(1, '999999999d')",
        "x = ('a' * 2**19).replace('a', 'b' * 2**19)",
        "x = ('b' * 2**19).join(['a'] * 4000)",
        "import re\nre.findall('(a+)+$', 'a' * 60 + 'b')",
        "import codecs\ncodecs.decode(b'x', 'zlib')",
        "x = (1).to_bytes(10**10, 'big')",
        "x = (1).to_bytes(length=10**10, byteorder='big')",
        "x = 'a'.zfill(10**10)",
        "x = '%*d' % (10**9, 1)",
        "x = '\\t'.expandtabs(tabsize=10**10)",
        "x = '{0}' * 2**16\nx = x.format('a' * 2**19)",
        "a, b = input, {1: 2}\n" + "if c:\n    a, b = b, a\n" * 60 + "open(f'{a}')",
    ],
)
def test_nothing_in_a_call_stalls_the_analysis(code):
    effects(code)


def test_a_large_number_is_put_into_a_text():
    assert ("read", "/s/12345678901") in effects("open('/s/%d' % 12345678901)")


@pytest.mark.parametrize("code", ["x = 'a' * 10**9", "x = 9 ** 9 ** 9", "x = '%999999999d' % 1"])
def test_nothing_large_is_worked_out(code):
    effects(code)


def test_recursion_ends_and_hides_nothing():
    assert (
        effects("def f(n):\n    return f(n - 1) + f(n - 2) if n > 1 else n\nprint(f(20))") == set()
    )
    grown = "def f(s):\n    return f(s + 'x') if len(s) < 9 else open(s)\nf('/s/')"
    assert ("unresolved", "path") in effects(grown)


@given(st.text(alphabet="abxos()[]{}'\"=+.,: \n_1f", max_size=40))
def test_any_text_is_analysed_without_an_error(code):
    effects(code)
