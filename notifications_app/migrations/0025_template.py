import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models

import pushsvc.common.ids


class Migration(migrations.Migration):

    dependencies = [
        ('channels_app', '0014_scope_subscribers'),
        ('notifications_app', '0024_targets'),
    ]

    operations = [
        migrations.CreateModel(
            name='Template',
            fields=[
                ('id', models.UUIDField(default=pushsvc.common.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ('name', models.CharField(max_length=100)),
                ('content_json', models.TextField(help_text='As it was given. Text, because jsonb does not keep the order of `data`.')),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('updated_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('channel', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='templates', to='channels_app.channel')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('channel', 'name'), name='template_name_once')],
            },
        ),
    ]
