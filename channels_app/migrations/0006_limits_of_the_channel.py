from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('channels_app', '0005_stored_subscriptions'),
    ]

    operations = [
        migrations.AlterField(
            model_name='channel',
            name='sends_per_second',
            field=models.PositiveIntegerField(blank=True, help_text="For all keys together. Empty: the installation's setting.", null=True),
        ),
    ]
