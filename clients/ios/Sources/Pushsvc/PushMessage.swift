import Foundation

/// What pushsvc adds to a notification's `userInfo`.
public struct PushMessage: Codable, Equatable, Sendable {
    public struct Button: Codable, Equatable, Sendable {
        public let id: String
        public let title: String
        public let url: String?
    }

    public let notificationId: String
    /// Identifies this delivery. Who has it can report events, so keep it out of logs.
    public let token: String
    public let url: String?
    public let icon: String?
    public let image: String?
    public let actions: [Button]?

    private enum CodingKeys: String, CodingKey {
        case token, url, icon, image, actions
        case notificationId = "notification_id"
    }

    /// Nil if the notification is not from pushsvc.
    public init?(userInfo: [AnyHashable: Any]) {
        var fields: [String: Any] = [:]
        for key in ["notification_id", "token", "url", "icon", "image", "actions"] { fields[key] = userInfo[key] }
        guard JSONSerialization.isValidJSONObject(fields),
            let data = try? JSONSerialization.data(withJSONObject: fields),
            let message = try? JSONDecoder().decode(PushMessage.self, from: data)
        else { return nil }
        self = message
    }

    /// What a tap opens: the button's link if it has one, else the notification's.
    public func link(button id: String? = nil) -> URL? {
        let button = actions?.first { $0.id == id }
        return (button?.url ?? url).flatMap(URL.init(string:))
    }
}
