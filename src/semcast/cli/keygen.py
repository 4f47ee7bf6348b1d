"""`semcast keygen`: makes keyrings, and turns them over from one key to the next."""

import argparse
import json
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from semcast.cli.errors import UsageError
from semcast.net.keyfile import KeyFileError, load_keyring, new_key, save_keyring
from semcast.wire.keyring import Cipher, Keyring, KeyringError

DEFAULT = Path("semcast-keys.toml")


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the verb to the program."""
    parser = subparsers.add_parser(
        "keygen",
        help="create or change the encryption keys of a group",
        description="Create a keyring file, or change one. To change the key of a running group: --add a key"
        " and copy the file to all hosts, --use the key and copy, --remove the old one and copy. Members"
        " reload the file automatically. Secrets are never printed.",
    )
    parser.add_argument(
        "file", metavar="FILE", nargs="?", type=Path, default=DEFAULT, help=f"default: {DEFAULT}"
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--add", action="store_true", help="add a key for decryption only")
    what.add_argument("--use", metavar="ID", help="encrypt with this key from now on")
    what.add_argument("--remove", metavar="ID", help="remove this key")
    what.add_argument("--list", action="store_true", help="list the keys; change nothing")
    parser.add_argument(
        "--cipher",
        choices=[cipher.value for cipher in Cipher],
        help="cipher of a new key (default: the faster one on this machine)",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Make or change a keyring, and print what is in it but the secrets."""
    try:
        keyring = _changed(args)
    except (KeyFileError, KeyringError) as error:
        raise UsageError(str(error)) from error
    if args.json:
        print(json.dumps(_as_json(args.file, keyring), indent=2))
    else:
        _print(args, keyring)
    return 0


def _changed(args: argparse.Namespace) -> Keyring:
    path: Path = args.file
    creates = not (args.add or args.use or args.remove or args.list)
    if args.cipher and not (creates or args.add):
        raise UsageError("--cipher is for new keys")
    if creates:
        if path.exists():
            raise UsageError(f"{path} exists already: --add adds a key to it")
        key = new_key(_cipher(args))
        keyring = Keyring([key], key.id)
        save_keyring(path, keyring, replace=False)
        return keyring
    keyring = load_keyring(path)
    if args.list:
        return keyring
    if args.add:
        keyring = keyring.adding(new_key(_cipher(args)))
    elif args.use:
        keyring = keyring.using(args.use)
    else:
        keyring = keyring.removing(args.remove)
    save_keyring(path, keyring, replace=True)
    return keyring


def _cipher(args: argparse.Namespace) -> Cipher | None:
    return Cipher(args.cipher) if args.cipher else None


def _print(args: argparse.Namespace, keyring: Keyring) -> None:
    console = Console()
    table = Table("key", "cipher", "seals")
    for key in keyring.keys:
        table.add_row(key.id, key.cipher.value, "yes" if key is keyring.sealing else "")
    console.print(table)
    if not args.list:
        console.print(f"[bold]{escape(str(args.file))}[/] {_advice(args, keyring)}", soft_wrap=True)


def _advice(args: argparse.Namespace, keyring: Keyring) -> str:
    if args.add:
        return f"Copy it to every member's host first, then run keygen with --use {keyring.keys[-1].id}."
    if args.use:
        return "Copy it to every member's host; once all use it, --remove the old key."
    if args.remove:
        return "Copy it to every member's host."
    return f"Copy it to every member's host (mode 600), and join with key_file={str(args.file)!r}."


def _as_json(path: Path, keyring: Keyring) -> dict[str, object]:
    return {
        "file": str(path),
        "use": keyring.sealing.id,
        "keys": [{"id": key.id, "cipher": key.cipher.value} for key in keyring.keys],
    }
