import json

import pytest

from harness_adapters.guard import ProposedCall
from harness_adapters.guard.audit import AuditLog
from harness_adapters.guard.redact import redacted
from harness_adapters.records import Decision, Verdict

# Made up for these tests, and put together here so that no scanner takes them for real ones.
SECRETS = {
    "openai": "sk-" + "proj-a1B2c3D4e5F6",
    "anthropic": "sk-" + "ant-api03-Zz9Yy8Xx7",
    "github": "ghp_" + "0123456789abcdefghij",
    "gitlab": "glpat-" + "abcDEF123456",
    "aws": "AKIA" + "IOSFODNN7EXAMPLE",
    "slack": "xoxb-" + "1234567890-abc",
    "hugging face": "hf_" + "AbCdEfGhIjKlMn",
    "jwt": "eyJ" + "hbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
    "long": "wJalrXUtnFEMI/K7MDENG/" + "bPxRfiCYEXAMPLEKEY",
}


@pytest.mark.parametrize("secret", SECRETS.values(), ids=SECRETS)
def test_what_looks_like_a_key_is_hidden_wherever_it_stands(secret):
    for text in (secret, f"curl -H 'X: {secret}' x", json.dumps({"command": f"export A={secret}"})):
        assert secret not in redacted(text, 10_000)
        assert "[redacted]" in redacted(text, 10_000)


@pytest.mark.parametrize(
    "text",
    [
        "curl -H 'Authorization: Bearer hunter22' x",
        "curl -H 'authorization: Basic aHVudGVyMjI=hunter22' x",
        "git clone https://me:hunter22@host/x",
        "export DB_PASSWORD=hunter22",
        "mysql --password hunter22 -h x",
        "mysql --password=hunter22",
        "curl -u me:hunter22 x",
        json.dumps({"api_key": "hunter22"}),
        json.dumps({"content": json.dumps({"client_secret": "hunter22"})}),
        '{"\\u0070assword": "\\u0068unter22"}',
        "token: 'hunter22'",
    ],
)
def test_what_a_name_says_is_secret_is_hidden(text):
    assert "hunter22" not in redacted(text, 10_000)


@pytest.mark.parametrize(
    "text",
    [
        '{"command": "ls -la /app && git show 0123456789abcdef0123456789abcdef01234567"}',
        '{"path": "src/harness_adapters/gateway/anthropic_wire.py", "limit": 40}',
        "pytest -q tests/guard --maxfail=1",
        "the passage, a tokenizer and the compass",
    ],
)
def test_ordinary_calls_stay_readable(text):
    assert redacted(text, 10_000) == text


def test_a_private_key_is_hidden_even_when_its_end_is_not_shown():
    text = "-----BEGIN OPENSSH " + "PRIVATE KEY-----\\nb3BlbnNzaC1r" + "A" * 9000
    assert redacted(text, 500) == "[redacted]"


def test_no_secret_is_cut_in_two_by_the_length_that_is_shown():
    secret = SECRETS["github"]
    assert secret[:8] not in redacted("x" * 185 + " " + secret, 200)


def test_the_log_holds_no_secret_but_the_hash_of_all(tmp_path):
    secret = SECRETS["openai"]
    log = AuditLog(tmp_path / "audit.jsonl")
    call = ProposedCall("s", "t", "pi", 0, "bash", json.dumps({"command": f"echo {secret}"}), "/")
    log.append(call, "call", Verdict(Decision.BLOCK, "r", f"it shows {secret}"))
    text = log.path.read_text()
    assert secret not in text
    assert text.count("[redacted]") == 2
