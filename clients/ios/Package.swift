// swift-tools-version:5.9
import PackageDescription

let package = Package(
    name: "pushsvc",
    platforms: [.iOS(.v15), .macOS(.v12)],
    products: [
        .library(name: "Pushsvc", targets: ["Pushsvc"]),
        .library(name: "PushsvcApp", targets: ["PushsvcApp"]),
        .library(name: "PushsvcExtension", targets: ["PushsvcExtension"]),
    ],
    targets: [
        .target(name: "Pushsvc"),
        .target(name: "PushsvcApp", dependencies: ["Pushsvc"]),
        .target(name: "PushsvcExtension", dependencies: ["Pushsvc"]),
    ]
)
