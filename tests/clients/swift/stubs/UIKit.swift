// What the kit and the guide use of UIKit, with the signatures of Apple's headers.
@_exported import Foundation

/// Prints what it is told to open. iOS's token for the app is in TOKEN.
@MainActor
open class UIApplication: NSObject {
    public struct LaunchOptionsKey: Hashable, Sendable { public let rawValue: String }
    public struct OpenExternalURLOptionsKey: Hashable, Sendable { public let rawValue: String }

    public static let shared = UIApplication()
    public nonisolated static let didBecomeActiveNotification =
        Notification.Name("UIApplicationDidBecomeActiveNotification")

    public var delegate: (any UIApplicationDelegate)?

    open func registerForRemoteNotifications() {
        let digits = Array(ProcessInfo.processInfo.environment["TOKEN"]!)
        let bytes = stride(from: 0, to: digits.count, by: 2).map { UInt8(String(digits[$0...$0 + 1]), radix: 16)! }
        DispatchQueue.main.async {
            self.delegate?.application(self, didRegisterForRemoteNotificationsWithDeviceToken: Data(bytes))
        }
    }

    open func open(
        _ url: URL, options: [OpenExternalURLOptionsKey: Any] = [:],
        completionHandler: (@MainActor @Sendable (Bool) -> Void)? = nil
    ) { say(["opened": url.absoluteString]) }
}

@MainActor
public protocol UIApplicationDelegate: NSObjectProtocol {
    init() // of Objective-C's objects
    func application(
        _ application: UIApplication,
        didFinishLaunchingWithOptions launchOptions: [UIApplication.LaunchOptionsKey: Any]?
    ) -> Bool
    func application(
        _ application: UIApplication, didRegisterForRemoteNotificationsWithDeviceToken deviceToken: Data)
    func application(
        _ application: UIApplication, didFailToRegisterForRemoteNotificationsWithError error: any Error)
}

extension UIApplicationDelegate {
    public func application(
        _ application: UIApplication, didFailToRegisterForRemoteNotificationsWithError error: any Error
    ) {}
}

/// One line of JSON for the test.
public func say(_ what: [String: Any]) {
    let data = try! JSONSerialization.data(withJSONObject: what)
    FileHandle.standardOutput.write(data + Data("\n".utf8))
}
