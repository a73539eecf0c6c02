package pushsvc.android

import android.Manifest
import android.app.job.JobInfo
import android.app.job.JobParameters
import android.app.job.JobScheduler
import android.app.job.JobService
import android.content.ComponentName
import android.content.Context
import android.content.pm.PackageManager
import android.util.Log

/** Wakes the app to send the queue when there is a network, even after a restart of the phone. */
internal class Jobs(private val context: Context, private val id: Int) {
    private val scheduler = context.getSystemService(Context.JOB_SCHEDULER_SERVICE) as JobScheduler

    /** Also sends the queue if the process ends before it has done so. */
    fun ensure() {
        if (scheduler.allPendingJobs.none { it.id == id }) schedule(60_000)
    }

    fun schedule(delayMs: Long) {
        val name = ComponentName(context, PushJobService::class.java)
        val restarts = context.checkCallingOrSelfPermission(Manifest.permission.RECEIVE_BOOT_COMPLETED)
        val job = JobInfo.Builder(id, name)
            .setRequiredNetworkType(JobInfo.NETWORK_TYPE_ANY)
            .setMinimumLatency(delayMs)
            .setPersisted(restarts == PackageManager.PERMISSION_GRANTED)
            .build()
        try {
            scheduler.schedule(job)
        } catch (error: RuntimeException) { // more jobs than the phone allows an app
            Log.w(TAG, "no job; the queue is sent at the next start of the app", error)
        }
    }

    fun cancel() = scheduler.cancel(id)
}

/** The system starts it. The app has called [Push.start] before, in `Application.onCreate`. */
class PushJobService : JobService() {
    override fun onStartJob(params: JobParameters): Boolean = Push.runJob { jobFinished(params, false) }

    // What is not sent by then stays in the queue, with a job of its own.
    override fun onStopJob(params: JobParameters): Boolean = false
}
