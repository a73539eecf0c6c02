"""The pages of schedules, automations and newsfeeds, whose addresses are named after the model."""

from django.urls import reverse


def edit(row):
    return reverse(f"admin:{row._meta.model_name}_edit", args=[row.pk])


def act(client, row, do, **form):
    """Presses a button of the page as it is now, unless `version` names an earlier one."""
    posted = {"do": do, "version": type(row).objects.get(pk=row.pk).version, **form}
    path = reverse(f"admin:{row._meta.model_name}_act", args=[row.pk])
    return client.post(path, posted, follow=True)
