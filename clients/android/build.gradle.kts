plugins {
    id("com.android.library")
    id("org.jetbrains.kotlin.android")
}

group = "pushsvc"
version = "0.1.0" // also VERSION in Values.kt

android {
    namespace = "pushsvc.android"
    compileSdk = 34

    defaultConfig {
        minSdk = 23
    }

    compileOptions {
        sourceCompatibility = JavaVersion.VERSION_1_8
        targetCompatibility = JavaVersion.VERSION_1_8
    }

    kotlinOptions {
        jvmTarget = "1.8"
    }
}
