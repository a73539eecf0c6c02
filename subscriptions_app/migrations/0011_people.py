import django.db.models.deletion
import django.db.models.functions.datetime
import pushsvc.common.ids
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('channels_app', '0013_people'),
        ('subscriptions_app', '0010_test_devices'),
    ]

    operations = [
        migrations.AddField(
            model_name='subscription',
            name='choices',
            field=models.JSONField(db_default=models.Value({}, output_field=models.JSONField()), default=dict, help_text='By category, only while the device has no person.'),
        ),
        migrations.AddField(
            model_name='subscription',
            name='language',
            field=models.CharField(blank=True, db_default='', default='', help_text='BCP 47.', max_length=35),
        ),
        migrations.AddField(
            model_name='subscription',
            name='timezone',
            field=models.CharField(blank=True, db_default='', default='', help_text='An IANA name.', max_length=64),
        ),
        migrations.AddField(
            model_name='subscription',
            name='timezone_changed_at',
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.CreateModel(
            name='Person',
            fields=[
                ('id', models.UUIDField(default=pushsvc.common.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ('external_id', models.CharField(max_length=128)),
                ('active_devices', models.PositiveIntegerField(db_default=0, default=0)),
                ('opted_out_at', models.DateTimeField(blank=True, help_text='Since then no device of the person is active.', null=True)),
                ('choices', models.JSONField(db_default=models.Value({}, output_field=models.JSONField()), default=dict, help_text='By category: whether the person wants its notifications.')),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('channel', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='people', to='channels_app.channel')),
            ],
        ),
        migrations.AddField(
            model_name='subscription',
            name='person',
            field=models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.RESTRICT, related_name='devices', to='subscriptions_app.person'),
        ),
        migrations.AddConstraint(
            model_name='person',
            constraint=models.UniqueConstraint(fields=('channel', 'external_id'), name='person_once'),
        ),
    ]
