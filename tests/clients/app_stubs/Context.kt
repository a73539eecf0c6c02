package android.content

abstract class Context {
    abstract fun getSharedPreferences(name: String, mode: Int): SharedPreferences

    companion object {
        const val MODE_PRIVATE = 0
    }
}

interface SharedPreferences {
    fun getString(key: String, default: String?): String?

    fun edit(): Editor

    interface Editor {
        fun putString(key: String, value: String?): Editor

        fun remove(key: String): Editor

        fun apply()
    }
}
