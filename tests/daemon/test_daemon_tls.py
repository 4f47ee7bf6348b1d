"""TCP beyond this host: only with TLS, and for nobody without a token."""

import asyncio
import datetime
import ipaddress
import uuid
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from tests.daemon.processes import PATIENCE, DaemonProcess

import semcast
from semcast.cli.main import main
from semcast.domains import DomainMessage

TOKEN = "a secret of some length"  # noqa: S105


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, Path]:
    """One that vouches for itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "daemon")])
    now = datetime.datetime.now(datetime.UTC)
    found = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    paths = tmp_path / "cert.pem", tmp_path / "key.pem"
    paths[0].write_bytes(found.public_bytes(serialization.Encoding.PEM))
    paths[1].write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return paths


def access(folder: Path, token: str = TOKEN) -> str:
    path = folder / "access.toml"
    path.write_text(f'[tokens]\nweb = "{token}"\n')
    path.chmod(0o600)
    return str(path)


def test_a_program_comes_in_over_tls(tmp_path: Path, certificate: tuple[Path, Path]) -> None:
    cert, key = map(str, certificate)
    flags = ("--listen", "127.0.0.1:0", "--access", access(tmp_path), "--cert", cert, "--key", key)
    daemon = DaemonProcess(tmp_path / "t.sock", f"tls-{uuid.uuid4().hex}", "t", *flags)

    async def talk() -> None:
        where = f"tls://{daemon.doors[1]}"
        async with asyncio.timeout(PATIENCE):
            with pytest.raises(semcast.GroupError, match="certificate verify failed"):
                await semcast.connect(where, token=TOKEN)
            async with semcast.connect(where, token=TOKEN, certificates=cert) as host:
                group = await host.join("g")
                payloads = [bytes(1000)] * 2000  # more than a record of TLS
                await group.send_many(payloads)
                found = 0
                async for event in group:
                    found += isinstance(event, DomainMessage)
                    if found == len(payloads):
                        break

    try:
        daemon.ready()
        asyncio.run(talk())
    finally:
        daemon.kill()


@pytest.mark.parametrize(
    ("flags", "why"),
    [
        (("--listen", "0.0.0.0:0"), "tokens would travel in the open"),
        (("--ws", "0.0.0.0:0"), "tokens would travel in the open"),
        (("--listen", "0.0.0.0:0", "TLS", "ANONYMOUS"), "every token needs a secret"),
        (("--listen", "127.0.0.1:0", "NO ACCESS"), "need tokens"),
        (("--cert", "x"), "both, the certificate and its key"),
    ],
)
def test_what_is_refused_at_the_start(
    tmp_path: Path,
    certificate: tuple[Path, Path],
    capsys: pytest.CaptureFixture[str],
    flags: tuple[str, ...],
    why: str,
) -> None:
    words = ["daemon", "--socket", str(tmp_path / "x.sock"), *(flag for flag in flags if not flag.isupper())]
    if "NO ACCESS" not in flags:
        words += ["--access", access(tmp_path, "" if "ANONYMOUS" in flags else TOKEN)]
    if "TLS" in flags:
        words += ["--cert", str(certificate[0]), "--key", str(certificate[1])]
    assert main(words) == 2
    assert why in capsys.readouterr().err
    assert not (tmp_path / "x.sock").exists()


def test_a_file_of_tokens_that_others_can_read_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = Path(access(tmp_path))
    path.chmod(0o644)
    assert main(["daemon", "--socket", str(tmp_path / "x.sock"), "--access", str(path)]) == 2
    assert "chmod 600" in capsys.readouterr().err


def test_the_unit_names_what_was_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["daemon", "--print-unit", "--domain", "floor", "--name", "h1", "--ws", "127.0.0.1:80"]) == 0
    unit = capsys.readouterr().out
    assert "Type=notify" in unit
    assert "--domain floor" in unit
    assert "--ws 127.0.0.1:80" in unit
