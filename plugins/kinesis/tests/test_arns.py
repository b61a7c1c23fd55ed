"""ARNs and regions are checked before anything is asked of the service."""

import pytest
from streamcore_kinesis.arns import arn_complaint, parse_arn, region_complaint


def test_a_good_arn_gives_its_parts():
    assert parse_arn("arn:aws-cn:kinesis:cn-north-1:123456789012:stream/a.b_c-d") == (
        "cn-north-1",
        "123456789012",
        "a.b_c-d",
    )


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("orders", "does not have the form arn:aws:kinesis:REGION:ACCOUNT:stream/NAME"),
        ("", "does not have the form arn:aws:kinesis:REGION:ACCOUNT:stream/NAME"),
        (
            "arn:aws:s3:::bucket",
            "is not the ARN of a Kinesis stream but of 's3'",
        ),
        ("arn:aws:kinesis::123456789012:stream/x", "names no region"),
        (
            "arn:aws:kinesis:us-east-1:12:stream/x",
            "has '12' where an account of 12 digits belongs",
        ),
        (
            "arn:aws:kinesis:us-east-1:123456789012:stream/",
            "has 'stream/' where 'stream/NAME' belongs",
        ),
    ],
)
def test_a_bad_arn_says_what_is_wrong(text, complaint):
    assert arn_complaint(text) == complaint


@pytest.mark.parametrize("name", ["us-east-1", "us-gov-west-1", "us-isob-east-1", "aws-global"])
def test_good_regions(name):
    assert region_complaint(name) is None


@pytest.mark.parametrize("name", ["us-east", "US-EAST-1", "moon", ""])
def test_bad_regions(name):
    assert "is not an AWS region" in region_complaint(name)
