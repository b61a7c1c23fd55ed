"""ARNs, names, regions and endpoints: what they look like, and what is wrong with one."""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import urlsplit

from streamcore.values import is_link_local

NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")
CONSUMER_ARN = re.compile(
    r"arn:aws[\w-]*:kinesis:[\w-]+:\d{12}:stream/([\w.-]{1,128})/consumer/[\w.-]{1,128}:\d+", re.A
)
REGION = re.compile(r"[a-z]+-([a-z]+-?[a-z]+-([0-9]|global)|global)")


class StreamArn(NamedTuple):
    """The parts of `arn:aws:kinesis:us-east-1:123456789012:stream/orders` that matter."""

    region: str
    account: str
    stream: str


def parse_arn(text: str) -> StreamArn:
    """Read a stream's ARN; ValueError says what is missing."""
    parts = text.split(":", 5)
    if parts[0] != "arn" or len(parts) != 6:
        raise ValueError("does not have the form arn:aws:kinesis:REGION:ACCOUNT:stream/NAME")
    partition, service, region, account, resource = parts[1:]
    if not partition.startswith("aws") or service != "kinesis":
        raise ValueError(f"is not the ARN of a Kinesis stream but of '{service or partition}'")
    if not region:
        raise ValueError("names no region")
    if not re.fullmatch(r"\d{12}", account):
        raise ValueError(f"has '{account}' where an account of 12 digits belongs")
    if not re.fullmatch(r"stream/[A-Za-z0-9_.-]{1,128}", resource):
        raise ValueError(f"has '{resource}' where 'stream/NAME' belongs")
    return StreamArn(region, account, resource.removeprefix("stream/"))


def arn_complaint(text: str) -> str | None:
    """The check of `stream.arn`."""
    try:
        parse_arn(text)
    except ValueError as error:
        return str(error)
    return None


def region_complaint(text: str) -> str | None:
    """The check of `aws.region`."""
    if REGION.fullmatch(text):
        return None
    return "is not an AWS region such as 'us-east-1', 'eu-central-1' or 'us-gov-west-1'"


def name_complaint(text: str) -> str | None:
    """The check of a stream's or a consumer's name."""
    if NAME.fullmatch(text):
        return None
    return "is not 1 to 128 of letters, digits, '_', '.' and '-'"


def sts_endpoint_complaint(text: str) -> str | None:
    """The check of an endpoint of STS."""
    return endpoint_complaint(text, "https://sts.us-east-1.amazonaws.com")


def endpoint_complaint(
    text: str, example: str = "https://kinesis.us-east-1.amazonaws.com"
) -> str | None:
    """The check of an endpoint."""
    try:
        parts = urlsplit(text)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        return f"is not a URL: {error}"
    if parts.scheme not in ("http", "https") or not host:
        return f"is not a URL such as '{example}'"
    if is_link_local(host):
        return "is a link-local address, refused"
    return None
