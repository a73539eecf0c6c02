import django.db.models.deletion
from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    # Notifications go on being accepted while the index is built.
    atomic = False

    dependencies = [
        ('notifications_app', '0003_events'),
    ]

    # First what may fail half-way: then nothing else has been changed (docs/operations.md).
    operations = [
        AddIndexConcurrently(
            model_name='notification',
            index=models.Index(fields=['channel', '-id'], name='notification_newest'),
        ),
        migrations.AddField(
            model_name='notification',
            name='only_subscription_id',
            field=models.UUIDField(blank=True, help_text='A test: this subscription gets it and no other.', null=True),
        ),
        migrations.AddField(
            model_name='plan',
            name='only_subscription_id',
            field=models.UUIDField(help_text='Of a test; null: all that the rule reaches.', null=True),
        ),
        migrations.CreateModel(
            name='OutcomeMinute',
            fields=[
                ('pk', models.CompositePrimaryKey('notification_id', 'minute', 'platform', 'code', blank=True, editable=False, primary_key=True, serialize=False)),
                ('notification', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='notifications_app.notification')),
                ('minute', models.DateTimeField()),
                ('platform', models.CharField(choices=[('web', 'Web'), ('android', 'Android'), ('ios', 'Ios')], max_length=7)),
                ('code', models.CharField(max_length=64)),
                ('count', models.BigIntegerField()),
            ],
            options={
                'constraints': [models.CheckConstraint(condition=models.Q(('platform__in', ['web', 'android', 'ios'])), name='outcome_platform')],
            },
        ),
    ]
