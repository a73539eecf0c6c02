from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('subscriptions_app', '0003_subscription_attributes'),
    ]

    operations = [
        migrations.AddField(
            model_name='subscription',
            name='is_set_aside',
            field=models.BooleanField(db_default=False, default=False, editable=False),
        ),
    ]
