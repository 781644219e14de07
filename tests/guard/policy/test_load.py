import pytest

from harness_adapters.errors import ConfigError
from harness_adapters.guard.policy import default_policy, load_policy

RULE = """
version = 1
[[rule]]
name = "no-secrets"
reason = "secrets are secret"
effects = ["read"]
paths = ["/secret/**"]
must_block = ["cat /secret/a"]
must_allow = ["cat /open/a"]
"""


def load(tmp_path, text):
    path = tmp_path / "policy.toml"
    path.write_text(text)
    return load_policy(path)


def test_a_policy_file_is_read(tmp_path):
    (rule,) = load(tmp_path, RULE).rule
    assert (rule.name, rule.decision) == ("no-secrets", "block")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("version = 1", "version = 2"), r"version: .*less than or equal to 1"),
        (("version = 1", "version ="), r"not TOML"),
        (('"read"', '"peek"'), r"rule\.0\.effects\.0: Input should be"),
        (("reason =", "raison ="), r"rule\.0\.r"),
        (('"no-secrets"', '"No Secrets"'), r"rule\.0\.name"),
        (("cat /secret/a", "cat /open/b"), r"no-secrets: must_block .*got allow by effects"),
        (("cat /open/a", "head /secret/b"), r"no-secrets: must_allow .*got block by no-secrets"),
        (('paths = ["/secret/**"]', 'paths = ["/secret/**"]\ncontent = ["("]'), r"no regular"),
    ],
)
def test_what_is_wrong_is_one_line(tmp_path, change, message):
    with pytest.raises(ConfigError, match=message) as caught:
        load(tmp_path, RULE.replace(*change))
    assert "\n" not in str(caught.value)
    assert "policy.toml" in str(caught.value)


def test_two_rules_of_one_name_are_refused(tmp_path):
    with pytest.raises(ConfigError, match="two rules are named no-secrets"):
        load(tmp_path, RULE + RULE.split("version = 1")[1])


def test_a_file_that_cant_be_read_is_one_line(tmp_path):
    with pytest.raises(ConfigError, match="No such file"):
        load_policy(tmp_path / "none.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="UTF-8"):
        load_policy(tmp_path / "binary.toml")


def test_the_shipped_rules_keep_their_own_examples():
    policy = default_policy()
    assert {rule.name for rule in policy.rule} >= {
        *("hidden-tests", "solution", "verifier", "reward-file", "visible-tests", "runner-files"),
        *("git-future", "network", "secrets", "guard-files", "escape", "destructive", "unresolved"),
    }
    bare = [r.name for r in policy.rule if not r.must_block]
    # Rules that only flag, and one whose paths come from the task alone.
    assert bare == ["protected-paths", "git-rewind", "ports"]
