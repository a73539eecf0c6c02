import django.db.models.deletion
import django.db.models.functions.datetime
import pushsvc.common.ids
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('channels_app', '0012_provider_links'),
    ]

    operations = [
        migrations.AddField(
            model_name='channel',
            name='category_required',
            field=models.BooleanField(db_default=False, default=False, help_text='Sends to the channel or to a rule must name a category.'),
        ),
        migrations.AddField(
            model_name='channel',
            name='identity',
            field=models.CharField(choices=[('proof', "Proof: only a token that the owner's backend signed"), ('trust', "Trust: anyone can receive anybody's messages"), ('off', 'Off: devices belong to nobody')], db_default='proof', default='proof', max_length=5),
        ),
        migrations.AddField(
            model_name='channelcounter',
            name='linked_devices',
            field=models.BigIntegerField(db_default=0, default=0, help_text='Active devices that belong to a person.'),
        ),
        migrations.AddField(
            model_name='channelcounter',
            name='people',
            field=models.BigIntegerField(db_default=0, default=0, help_text='Persons that have an active device.'),
        ),
        migrations.CreateModel(
            name='IdentityKey',
            fields=[
                ('id', models.UUIDField(default=pushsvc.common.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ('algorithm', models.CharField(choices=[('HS256', 'HS256'), ('ES256', 'ES256')], max_length=5)),
                ('secret_encrypted', models.TextField(blank=True, default='', editable=False)),
                ('public_key', models.TextField(blank=True, default='', editable=False)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('retired_at', models.DateTimeField(blank=True, null=True)),
                ('channel', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='identity_keys', to='channels_app.channel')),
            ],
        ),
    ]
