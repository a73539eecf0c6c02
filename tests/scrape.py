"""Reads /metrics as Prometheus does."""

from django.test import Client
from prometheus_client.parser import text_string_to_metric_families


def scrape():
    """The samples by name; each maps its labels (sorted values) to its number."""
    response = Client().get("/metrics")
    assert response.status_code == 200
    found = {}
    for family in text_string_to_metric_families(response.content.decode()):
        for sample in family.samples:
            labels = tuple(value for _, value in sorted(sample.labels.items()))
            found.setdefault(sample.name, {})[labels] = sample.value
    return found
