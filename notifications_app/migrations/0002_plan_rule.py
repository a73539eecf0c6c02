from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    # Notifications go on being accepted while the index is built.
    atomic = False

    dependencies = [
        ('notifications_app', '0001_initial'),
        ('subscriptions_app', '0002_segment'),
    ]

    operations = [
        AddIndexConcurrently(
            model_name='notification',
            index=models.Index(condition=models.Q(('segment_id__isnull', False), ('status__in', ['pending', 'processing'])), fields=['segment_id'], name='notification_segment_open'),
        ),
        migrations.AddField(
            model_name='plan',
            name='rule',
            field=models.JSONField(help_text="The segment's rule as it was at the start; null: the whole channel.", null=True),
        ),
    ]
