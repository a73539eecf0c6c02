import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models

# Tags go with their subscription, wherever that is deleted: also by statements of other programs.
_CASCADE = """
ALTER TABLE subscriptions_app_tag ADD CONSTRAINT tag_of_subscription
FOREIGN KEY (subscription_id) REFERENCES subscriptions_app_subscription (id) ON DELETE CASCADE
"""


class Migration(migrations.Migration):

    dependencies = [
        ('subscriptions_app', '0012_person_index'),
    ]

    operations = [
        migrations.CreateModel(
            name='TagRemoval',
            fields=[
                ('pk', models.CompositePrimaryKey('channel_id', 'tag', blank=True, editable=False, primary_key=True, serialize=False)),
                ('channel_id', models.UUIDField()),
                ('tag', models.CharField(db_collation='C', max_length=64)),
                ('asked_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
            ],
        ),
        migrations.CreateModel(
            name='Tag',
            fields=[
                ('pk', models.CompositePrimaryKey('channel_id', 'platform', 'tag', 'subscription', blank=True, editable=False, primary_key=True, serialize=False)),
                ('channel_id', models.UUIDField()),
                ('platform', models.CharField(choices=[('web', 'Web'), ('android', 'Android'), ('ios', 'Ios')], max_length=7)),
                ('tag', models.CharField(db_collation='C', max_length=64)),
                ('subscription', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='tags', to='subscriptions_app.subscription')),
            ],
            options={
                'indexes': [models.Index(fields=['subscription'], name='tag_subscription')],
            },
        ),
        migrations.RunSQL(_CASCADE, migrations.RunSQL.noop),
    ]
