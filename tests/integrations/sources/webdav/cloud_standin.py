"""A real WebDAV server on this machine, with a folder's files at the addresses that Nextcloud has."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any, Self

from cheroot import wsgi
from wsgidav.wsgidav_app import WsgiDAVApp

from rag.integrations.sources.webdav.webdav import WebdavSource

USER, PASSWORD = "ada", "hunter2-hunter2"


class Cloud:
    """Serves `folder`; `read` has the names of the files that were fetched. Closes `sources` at its end."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.read: list[str] = []
        self.sources: list[WebdavSource] = []
        folder.mkdir()
        application = WsgiDAVApp(
            {
                "provider_mapping": {f"/remote.php/dav/files/{USER}": str(folder)},
                "simple_dc": {"user_mapping": {"*": {USER: {"password": PASSWORD}}}},
                "http_authenticator": {"accept_digest": False, "default_to_digest": False},
                "verbose": 0,
                "logging": {"enable": False},
            }
        )

        def noted(environ: dict[str, Any], start_response: Any) -> Any:
            if environ["REQUEST_METHOD"] == "GET":
                self.read.append(Path(environ["PATH_INFO"]).name)
            return application(environ, start_response)

        self._server = wsgi.Server(("127.0.0.1", 0), noted, numthreads=2)
        self._server.prepare()
        self._thread = threading.Thread(target=self._server.serve, daemon=True)

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self._server.bind_addr[1]}"

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        for source in self.sources:
            source.close()
        self._server.stop()
        self._thread.join()
