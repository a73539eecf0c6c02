// What the kit and the guide use of UserNotifications, with the signatures of Apple's headers.
import Foundation

public struct UNAuthorizationOptions: OptionSet, Sendable {
    public let rawValue: UInt
    public init(rawValue: UInt) { self.rawValue = rawValue }
    public static let badge = Self(rawValue: 1 << 0)
    public static let sound = Self(rawValue: 1 << 1)
    public static let alert = Self(rawValue: 1 << 2)
}

public struct UNNotificationPresentationOptions: OptionSet, Sendable {
    public let rawValue: UInt
    public init(rawValue: UInt) { self.rawValue = rawValue }
    public static let badge = Self(rawValue: 1 << 0)
    public static let sound = Self(rawValue: 1 << 1)
    public static let list = Self(rawValue: 1 << 3)
    public static let banner = Self(rawValue: 1 << 4)
}

public enum UNAuthorizationStatus: Int, Sendable { case notDetermined, denied, authorized, provisional, ephemeral }

open class UNNotificationSettings: NSObject {
    public let authorizationStatus: UNAuthorizationStatus
    init(_ status: UNAuthorizationStatus) { authorizationStatus = status }
}

public struct UNNotificationActionOptions: OptionSet, Sendable {
    public let rawValue: UInt
    public init(rawValue: UInt) { self.rawValue = rawValue }
    public static let foreground = Self(rawValue: 1 << 2)
}

open class UNNotificationAction: NSObject {
    public let identifier: String
    public let title: String
    public init(identifier: String, title: String, options: UNNotificationActionOptions = []) {
        self.identifier = identifier
        self.title = title
    }
}

public struct UNNotificationCategoryOptions: OptionSet, Sendable {
    public let rawValue: UInt
    public init(rawValue: UInt) { self.rawValue = rawValue }
    public static let customDismissAction = Self(rawValue: 1 << 0)
}

open class UNNotificationCategory: NSObject {
    public let identifier: String
    public init(
        identifier: String, actions: [UNNotificationAction], intentIdentifiers: [String],
        options: UNNotificationCategoryOptions = []
    ) { self.identifier = identifier }
}

public let UNNotificationDefaultActionIdentifier = "com.apple.UNNotificationDefaultActionIdentifier"
public let UNNotificationDismissActionIdentifier = "com.apple.UNNotificationDismissActionIdentifier"

open class UNNotificationAttachment: NSObject {
    public let identifier: String
    public let url: URL
    public init(identifier: String, url: URL, options: [AnyHashable: Any]? = nil) throws {
        self.identifier = identifier
        self.url = url
    }
}

open class UNNotificationContent: NSObject {
    fileprivate(set) var info: [AnyHashable: Any]
    fileprivate var attached: [UNNotificationAttachment]
    public init(userInfo: [AnyHashable: Any], attachments: [UNNotificationAttachment] = []) {
        info = userInfo
        attached = attachments
    }
    open var userInfo: [AnyHashable: Any] { info }
    open var attachments: [UNNotificationAttachment] { attached }
    open override func mutableCopy() -> Any { UNMutableNotificationContent(userInfo: info, attachments: attached) }
}

open class UNMutableNotificationContent: UNNotificationContent {
    open override var attachments: [UNNotificationAttachment] {
        get { attached }
        set { attached = newValue }
    }
}

open class UNNotificationRequest: NSObject {
    public let content: UNNotificationContent
    public init(_ content: UNNotificationContent) { self.content = content }
}

open class UNNotification: NSObject {
    public let request: UNNotificationRequest
    public init(_ request: UNNotificationRequest) { self.request = request }
}

open class UNNotificationResponse: NSObject {
    public let notification: UNNotification
    public let actionIdentifier: String
    public init(_ notification: UNNotification, _ actionIdentifier: String) {
        self.notification = notification
        self.actionIdentifier = actionIdentifier
    }
}

public protocol UNUserNotificationCenterDelegate: NSObjectProtocol {
    func userNotificationCenter(
        _ center: UNUserNotificationCenter, willPresent notification: UNNotification,
        withCompletionHandler completionHandler: @escaping (UNNotificationPresentationOptions) -> Void)
    func userNotificationCenter(
        _ center: UNUserNotificationCenter, didReceive response: UNNotificationResponse,
        withCompletionHandler completionHandler: @escaping () -> Void)
}

/// The user gives permission when asked, unless PERMISSION is `denied`. Kept in KEYCHAIN/permission.
open class UNUserNotificationCenter: NSObject, @unchecked Sendable {
    private static let center = UNUserNotificationCenter()
    private let asked = URL(fileURLWithPath: ProcessInfo.processInfo.environment["KEYCHAIN"]!)
        .appendingPathComponent("permission")

    public weak var delegate: (any UNUserNotificationCenterDelegate)?
    public private(set) var categories: Set<UNNotificationCategory> = []

    public class func current() -> UNUserNotificationCenter { center }

    open func requestAuthorization(options: UNAuthorizationOptions = []) async throws -> Bool {
        let answer = ProcessInfo.processInfo.environment["PERMISSION"] ?? "authorized"
        try Data(answer.utf8).write(to: asked)
        return answer == "authorized"
    }

    open func getNotificationSettings(completionHandler: @escaping @Sendable (UNNotificationSettings) -> Void) {
        let answer = (try? Data(contentsOf: asked)).map { String(decoding: $0, as: UTF8.self) }
        let status: UNAuthorizationStatus = answer == nil ? .notDetermined : answer == "authorized" ? .authorized : .denied
        DispatchQueue.global().async { completionHandler(UNNotificationSettings(status)) }
    }

    open func setNotificationCategories(_ categories: Set<UNNotificationCategory>) { self.categories = categories }
}

open class UNNotificationServiceExtension: NSObject {
    open func didReceive(
        _ request: UNNotificationRequest, withContentHandler contentHandler: @escaping (UNNotificationContent) -> Void
    ) {}
    open func serviceExtensionTimeWillExpire() {}
}
