"""`tuckergp doctor`: checks whether this installation works, and says what to do if not."""

from __future__ import annotations

import typer

from tuckergp.cli.options import Json, Output

__all__ = ["doctor"]


def doctor(output: Output = None, as_json: Json = False) -> None:
    """Check versions, machine, folders and a small model, from fit to prediction; exit code 1 if one is broken."""
    from dataclasses import asdict

    from tuckergp.cli.checks import CHECKS, checked
    from tuckergp.cli.tables import check_output, to_json, write_result

    check_output(output)
    checks = [check for run_check in CHECKS for check in checked(run_check)]
    broken = [check for check in checks if not check.ok]
    result = {"ok": not broken, "checks": [asdict(check) for check in checks]}
    if output is not None:
        write_result(output, result, result["checks"])  # type: ignore[arg-type]
    if as_json:
        print(to_json(result))
    else:
        group = ""
        for check in checks:
            if check.group != group:
                group = check.group
                print(group)
            print(f"  {'' if check.ok else 'BROKEN '}{check.name}: {check.found}")
            if not check.ok:
                print(f"    {check.remedy}")
        print("Something is broken." if broken else "All is well.")
    if broken:
        raise typer.Exit(1)
