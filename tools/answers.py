"""The examples of answers in OpenAPI: what the demo's model, and a regression model, answer to examples of requests.

`python tools/answers.py` writes `src/tuckergp/serve/answers.json`; long lists are cut short and numbers rounded. It
needs the extra test.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from fastapi.testclient import TestClient

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.serve.models import map_model
from tests.serve.requests import asked

from tuckergp.cli.explore import demo_model
from tuckergp.serve.app import create_app
from tuckergp.serve.pages import PageState

TARGET = Path(__file__).parents[1] / "src" / "tuckergp" / "serve" / "answers.json"
FROM_REGRESSION = {"POST /page/surface": "series"}
LONG, KEPT, TEXT_LINES = 10, 3, 12


def short(value: Any) -> Any:
    """A value without long lists and long numbers."""
    if isinstance(value, dict):
        return {name: short(each) for name, each in value.items()}
    if isinstance(value, list):
        return [short(each) for each in (value[:KEPT] if len(value) >= LONG else value)]
    return float(f"{value:.4g}") if isinstance(value, float) and abs(value) < 1e6 else value


def main() -> None:
    """Ask each operation with its first example, those that change something last."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        test = demo_model(folder / "model.tgp", seed=0)
        map_model().save(folder / "map.tgp")
        demo, regression = create_app(folder / "model.tgp"), create_app(folder / "map.tgp")
        demo.state.page = PageState(test)
        schema, found = demo.openapi(), {}
        operations = [(method, path) for path, methods in schema["paths"].items() for method in methods]
        with TestClient(demo, "http://localhost") as recommender, TestClient(regression, "http://localhost") as other:
            for method, path in sorted(operations, key=lambda pair: pair[0] == "delete" or "fold" in pair[1]):
                name = f"{method.upper()} {path}"
                client = other if name in FROM_REGRESSION else recommender
                answer = client.request(**asked(schema, method, path, FROM_REGRESSION.get(name)))
                assert answer.status_code == 200, (name, answer.text)
                is_json = answer.headers["content-type"] == "application/json"
                text = "".join(line + "\n" for line in answer.text.splitlines()[:TEXT_LINES])
                found[name] = short(answer.json()) if is_json else text
    TARGET.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
