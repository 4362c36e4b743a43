"""Nested values of pyarrow as JSON has them."""
import pyarrow as pa


def as_json(value, kind):
    """What a nested value is as JSON: maps are objects by key."""
    if value is None:
        return None
    if pa.types.is_map(kind):
        return {str(key): as_json(item, kind.item_type) for key, item in value}
    if pa.types.is_struct(kind):
        return {field.name: as_json(value[field.name], field.type) for field in kind}
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return [as_json(item, kind.value_type) for item in value]
    return value
