from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('notifications_app', '0008_lease_losses'),
    ]

    operations = [
        migrations.AddField(
            model_name='notification',
            name='data_names',
            field=models.JSONField(blank=True, help_text="The names of `data` in the sender's order, which jsonb does not keep.", null=True),
        ),
    ]
