from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('channels_app', '0005_stored_subscriptions'),
        ('subscriptions_app', '0006_services_by_whole_host'),
    ]

    operations = [
        # What is there already is taken as proven. As a default it is written to no row.
        migrations.AddField(
            model_name='subscription',
            name='is_proven',
            field=models.BooleanField(db_default=True, default=False, editable=False),
        ),
        migrations.AlterField(
            model_name='subscription',
            name='is_proven',
            field=models.BooleanField(db_default=False, default=False, editable=False, help_text='A push service has taken a message for it.'),
        ),
    ]
