// swift-tools-version:5.9
import PackageDescription

let package = Package(
    name: "programs",
    dependencies: [.package(name: "pushsvc", path: "../kit")],
    targets: [
        .executableTarget(name: "device", dependencies: [.product(name: "Pushsvc", package: "pushsvc")]),
        .executableTarget(
            name: "app",
            dependencies: [
                .product(name: "Pushsvc", package: "pushsvc"), .product(name: "PushsvcApp", package: "pushsvc"),
            ],
            swiftSettings: [.unsafeFlags(["-parse-as-library"])]),
        .executableTarget(
            name: "extension", dependencies: [.product(name: "PushsvcExtension", package: "pushsvc")]),
    ]
)
