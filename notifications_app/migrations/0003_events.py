from django.db import migrations, models


class Migration(migrations.Migration):
    """Columns with defaults of the database's own: processes of the version before go on writing."""

    dependencies = [
        ('notifications_app', '0002_plan_rule'),
    ]

    operations = [
        migrations.AddField(
            model_name='delivery',
            name='dismissed_at',
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name='delivery',
            name='received_at',
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name='notification',
            name='dismissed_count',
            field=models.PositiveBigIntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name='notification',
            name='received_count',
            field=models.PositiveBigIntegerField(db_default=0, default=0),
        ),
    ]
