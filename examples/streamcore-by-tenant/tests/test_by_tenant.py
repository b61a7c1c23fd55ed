import pyarrow as pa
from streamcore import Target
from streamcore.testing import PartitionerContract
from streamcore_by_tenant import ByTenant


class TestByTenant(PartitionerContract):
    plugin = ByTenant()
    columns = {"tenant": "STRING", "amount": "BIGINT"}


def test_a_tenant_stays_on_one_partition():
    rows = pa.RecordBatch.from_pylist([{"tenant": f"t{n % 5}"} for n in range(50)])
    picks = ByTenant().assign(rows, [None] * 50, Target("orders", 12, 0))
    assert picks == picks[:5] * 10
