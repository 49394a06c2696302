"""Plain CloudFormation templates for people without the CDK: `python -m infra.templates --env prod`.

The folder then contains a template, its assets by the names that the template expects in a bucket, and a README.
"""

import argparse
import json
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from infra.node import use_current_node

use_current_node()  # before the CDK starts one

from aws_cdk import App, CfnParameter, DefaultStackSynthesizer  # noqa: E402

from hooksaga.aws.deployment import InvalidDeployment  # noqa: E402
from infra.app import build  # noqa: E402

ROOT = Path(__file__).resolve().parents[1]
BUCKET = "AssetBucket"
FIRST_DAY = (1980, 1, 1, 0, 0, 0)
"""The earliest time in an archive: the same files give the same bytes."""

README = """\
# hooksaga as a CloudFormation template

`{template}` creates all of hooksaga. The code of its functions is in `assets/`, for a bucket of yours in the same
region. You need the AWS CLI and credentials that may create the resources.

```sh
aws s3 mb s3://BUCKET                                   # once; the name is yours
aws s3 sync assets s3://BUCKET
aws cloudformation deploy --stack-name {stack} --template-file {template} --s3-bucket BUCKET \\
    --parameter-overrides {bucket}=BUCKET --capabilities CAPABILITY_IAM
aws cloudformation describe-stacks --stack-name {stack} --query 'Stacks[0].Outputs'
```

Then run the command of the output `HooksNextStep`, which creates the first API key;
`pip install 'hooksaga[aws]'` installs it.

Keep the assets in the bucket: CloudFormation reads them again when it rolls back. To upgrade, publish
the assets of the new version and deploy its template in the same way.
"""


def write(folder: Path, context: dict[str, Any]) -> Path:
    """Write the template that the context selects, as `cdk synth -c` does, and return its path. Replaces the folder.

    Raises InvalidDeployment.
    """
    ours = json.loads((ROOT / "cdk.json").read_text(encoding="utf-8"))["context"]
    with tempfile.TemporaryDirectory(prefix="hooksaga-templates-") as output:
        app = App(outdir=output, context={**ours, **context}, analytics_reporting=False)
        stack = build(app, _synthesizer())
        CfnParameter(stack, BUCKET, description="Bucket in this region with the files of assets/")
        app.synth()
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "assets").mkdir(parents=True)
        template = folder / f"{stack.stack_name}.template.json"
        shutil.copyfile(Path(output) / template.name, template)
        for key, source in _assets(Path(output), stack.artifact_id):
            _pack(source, folder / "assets" / key)
    text = README.format(template=template.name, stack=stack.stack_name, bucket=BUCKET)
    (folder / "README.md").write_text(text, encoding="utf-8")
    return template


def _synthesizer() -> DefaultStackSynthesizer:
    """Name the bucket by a parameter, and nothing of a bootstrapped account."""
    return DefaultStackSynthesizer(
        file_assets_bucket_name=f"${{{BUCKET}}}", generate_bootstrap_version_rule=False
    )


def _assets(output: Path, stack: str) -> Iterator[tuple[str, Path]]:
    """Return the assets of the stack, except its template, by their keys in the bucket."""
    manifest = json.loads((output / f"{stack}.assets.json").read_text(encoding="utf-8"))
    for asset in manifest["files"].values():
        source = output / asset["source"]["path"]
        if not source.name.endswith(".template.json"):
            for destination in asset["destinations"].values():
                yield destination["objectKey"], source


def _pack(source: Path, target: Path) -> None:
    """Write the archive of a folder; a file is copied as it is."""
    if source.is_file():
        shutil.copyfile(source, target)
        return
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(path for path in source.rglob("*") if path.is_file()):
            entry = zipfile.ZipInfo(path.relative_to(source).as_posix(), FIRST_DAY)
            entry.external_attr = (0o100755 if path.stat().st_mode & 0o100 else 0o100644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, path.read_bytes())


def main() -> int:
    parser = argparse.ArgumentParser(description="Write plain CloudFormation templates and their assets.")
    parser.add_argument("--env", default="dev", help="environment of shared/hooksaga/aws/deployment.py")
    parser.add_argument("--folder", type=Path, default=ROOT / "templates", help="is replaced")
    parser.add_argument("-c", "--context", action="append", default=[], metavar="NAME=VALUE")
    given = parser.parse_args()
    context = dict(pair.split("=", 1) for pair in given.context if "=" in pair)
    try:
        template = write(given.folder, {"env": given.env, **context})
    except InvalidDeployment as problem:
        raise SystemExit(str(problem)) from None
    print(f"{template}: see README.md beside it", file=sys.stderr)  # noqa: T201 - a command
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
