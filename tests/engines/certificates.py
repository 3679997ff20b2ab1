"""A certificate authority for tests, and a certificate of this machine that it has signed."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


@dataclass
class Certificates:
    """Files: of the authority, and of a server under the names of `made`."""

    authority: Path
    certificate: Path
    key: Path


def made(folder: Path, names: str = "DNS:localhost,IP:127.0.0.1") -> Certificates:
    """Certificates of a day, by openssl."""
    if not shutil.which("openssl"):
        pytest.skip("there is no openssl to make a certificate with")

    def openssl(*words: str) -> None:
        subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)

    (folder / "names").write_text(f"subjectAltName={names}\n")
    subject = ("-subj", "/CN=elute tests")
    openssl("req", "-x509", *_KEY, "-keyout", "ca.key", "-out", "ca.crt", "-days", "1", *subject)
    openssl("req", *_KEY, "-keyout", "server.key", "-out", "server.csr", "-subj", "/CN=server")
    signing = ("-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-extfile", "names")
    openssl("x509", "-req", "-in", "server.csr", "-out", "server.crt", "-days", "1", *signing)
    return Certificates(folder / "ca.crt", folder / "server.crt", folder / "server.key")
