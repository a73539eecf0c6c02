from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('notifications_app', '0031_batch_ready_small'),
    ]

    operations = [
        migrations.AddField(
            model_name='batch',
            name='holder',
            field=models.UUIDField(help_text='The process that claimed it last: `process_id` of redis_client.', null=True),
        ),
    ]
