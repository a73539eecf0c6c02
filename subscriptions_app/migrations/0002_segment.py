import django.db.models.deletion
import django.db.models.functions.datetime
import pushsvc.common.ids
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('channels_app', '0001_initial'),
        ('subscriptions_app', '0001_initial'),
    ]

    operations = [
        migrations.CreateModel(
            name='Segment',
            fields=[
                ('id', models.UUIDField(default=pushsvc.common.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ('name', models.CharField(max_length=100)),
                ('rule', models.JSONField(help_text='As docs/segments.md says; checked by the services.')),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('updated_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('channel', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='segments', to='channels_app.channel')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('channel', 'name'), name='segment_name_once')],
            },
        ),
    ]
