from django.contrib.postgres.operations import AddIndexConcurrently, RemoveIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ('subscriptions_app', '0015_person_left'),
    ]

    operations = [
        AddIndexConcurrently(
            model_name='person',
            index=models.Index(condition=models.Q(('choices', {}), ('left_at__isnull', False), ('opted_out_at__isnull', True)), fields=['channel', 'left_at'], name='person_left_channel'),
        ),
        RemoveIndexConcurrently(
            model_name='person',
            name='person_left',
        ),
    ]
