"""Who may do what: tokens, TLS, and which places a server refuses to listen at."""

import datetime
import ipaddress
import os
import ssl
from pathlib import Path

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from tests.server.conftest import Serve

from semcast.server.application import application
from semcast.server.serving import HttpServer, ServerAddress, ServingError
from semcast.server.tokens import Role, TokenFileError, Tokens

READ, WRITE, ADMIN = "r" * 20, "w" * 20, "a" * 20


@pytest.fixture
def tokens(tmp_path: Path) -> Path:
    path = tmp_path / "tokens"
    path.write_text(f"# who may do what\nread {READ}\nwrite {WRITE} # the shop\nadmin {ADMIN}\n")
    path.chmod(0o600)
    return path


def test_each_role_may_do_what_the_one_before_it_may(serve: Serve, tokens: Path) -> None:
    client = serve(tokens=tokens).client()
    asked = [
        ("GET", "/v1/status", None),
        ("POST", "/v1/execute", {"sql": "create table if not exists t(a)"}),
        ("GET", "/v1/backup", None),
        ("POST", "/v1/mark", {}),
        ("POST", "/v1/digests", {"position": 0}),
    ]
    found = {}
    for token in ("", "stranger" * 3, READ, WRITE, ADMIN):
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        found[token] = [
            client.request(method, path, json=body, headers=headers).status_code
            for method, path, body in asked
        ]
    assert found == {
        "": [401] * 5,
        "stranger" * 3: [401] * 5,
        READ: [200, 403, 403, 403, 403],
        WRITE: [200, 200, 403, 403, 403],
        ADMIN: [200] * 5,
    }


def test_a_refusal_says_what_is_missing(serve: Serve, tokens: Path) -> None:
    client = serve(tokens=tokens).client()
    unknown = client.get("/v1/status")
    assert unknown.headers["WWW-Authenticate"] == "Bearer"
    assert "Authorization: Bearer TOKEN" in unknown.json()["error"]
    forbidden = client.get("/v1/backup", headers={"Authorization": f"Bearer {READ}"})
    assert forbidden.json()["error"] == "this needs the role admin, and the token has read"
    for odd in ("Bearer", "Basic %%%", "Basic " + "YQ==", "Digest x", b"\xff"):
        assert (
            client.get(
                "/v1/status", headers={b"Authorization": odd if isinstance(odd, bytes) else odd.encode()}
            ).status_code
            == 401
        )


def test_a_password_may_be_a_token(serve: Serve, tokens: Path) -> None:
    client = serve(tokens=tokens).client()
    assert client.get("/v1/status", auth=("whoever", READ)).status_code == 200
    assert client.get("/v1/status", auth=("whoever", "")).status_code == 401


def test_tokens_come_and_go_without_a_restart(tokens: Path) -> None:
    known = Tokens(tokens)
    assert known.role(WRITE) is Role.WRITE
    tokens.write_text(f"read {WRITE}\n")
    known.refresh()
    assert known.role(WRITE) is Role.READ
    assert known.role(READ) is None
    tokens.write_text("nonsense")
    known.refresh()
    assert "line 1" in known.problem
    assert known.role(WRITE) is Role.READ


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "has no token"),
        ("# nothing\n", "has no token"),
        ("read", "line 1: a line is a role and a token"),
        (f"boss {READ}", "line 1: the role is none of"),
        ("read short", "16 to 256"),
        ("\xff" * 40, "role and a token"),
        ("x" * 70_000, "more than 65536 bytes"),
    ],
)
def test_a_file_that_has_no_tokens(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "tokens"
    path.write_text(text)
    path.chmod(0o600)
    with pytest.raises(TokenFileError, match=words) as raised:
        Tokens(path)
    assert READ not in str(raised.value)


def test_a_file_that_is_not_there_or_open_to_others(tmp_path: Path, tokens: Path) -> None:
    with pytest.raises(TokenFileError, match="No such file"):
        Tokens(tmp_path / "none")
    tokens.chmod(0o644)
    with pytest.raises(TokenFileError, match="chmod 600"):
        Tokens(tokens)


def test_without_tokens_a_page_in_a_browser_gets_nothing(serve: Serve) -> None:
    client = serve().client()
    assert client.get("/v1/status", headers={"Host": "localhost:1"}).status_code == 200
    rebound = client.get("/v1/status", headers={"Host": "evil.example"})
    assert (rebound.status_code, rebound.json()["code"]) == (403, "forbidden")
    form = client.post("/v1/execute", content=b'{"sql": "x"}', headers={"Content-Type": "text/plain"})
    assert form.status_code == 415


@pytest.mark.parametrize(
    ("place", "tokens", "words"),
    [
        (ServerAddress("0.0.0.0:0"), False, "give a file of tokens"),
        (ServerAddress("0.0.0.0:0"), True, "give a certificate"),
        (ServerAddress("db.example:1"), True, "give a certificate"),
        (ServerAddress("127.0.0.1"), True, "not an address and a port"),
        (ServerAddress("127.0.0.1:0", certificate="x"), True, "both"),
    ],
)
def test_a_place_that_is_not_safe(place: ServerAddress, tokens: bool, words: str) -> None:
    with pytest.raises(ServingError, match=words):
        place.check(tokens=tokens)


@pytest.mark.parametrize("listen", ["127.0.0.1:0", "[::1]:0", "localhost:80"])
def test_this_host_is_safe_enough(listen: str) -> None:
    ServerAddress(listen).check(tokens=False)
    ServerAddress("0.0.0.0:1", insecure=True).check(tokens=False)
    ServerAddress("0.0.0.0:1", "c", "k").check(tokens=True)


def certificate(folder: Path) -> tuple[str, str]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now)
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False
        )
        .sign(key, hashes.SHA256())
    )
    (folder / "cert.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    (folder / "key.pem").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    return os.fspath(folder / "cert.pem"), os.fspath(folder / "key.pem")


def test_tls(serve: Serve, tmp_path: Path) -> None:
    cert, key = certificate(tmp_path)
    running = serve(place=ServerAddress("127.0.0.1:0", cert, key))
    context = ssl.create_default_context(cafile=cert)
    with httpx.Client(verify=context, trust_env=False) as client:
        assert client.get(f"https://{running.address}/v1/status").status_code == 200
    with httpx.Client(trust_env=False) as stranger, pytest.raises(httpx.ConnectError):
        stranger.get(f"https://{running.address}/v1/status")
    with httpx.Client(trust_env=False) as plain, pytest.raises(httpx.RemoteProtocolError):
        plain.get(f"http://{running.address}/v1/status")


def test_a_certificate_that_is_none(tmp_path: Path) -> None:
    cert, key = certificate(tmp_path)
    served = application(None, Tokens(None))  # type: ignore[arg-type]
    with pytest.raises(ServingError, match="not a certificate and its key"):
        HttpServer(served, ServerAddress("127.0.0.1:0", key, cert))
    with pytest.raises(ServingError, match="No such file"):
        HttpServer(served, ServerAddress("127.0.0.1:0", str(tmp_path / "no"), key))
