/// Whether the saves of a store write its history.
public enum HistoryTracking: String, Sendable, Hashable, Codable, CaseIterable {
  /// If the file has a history. Another process that reads it then misses no save.
  case ifPresent
  /// Always. A file that has no history gets one.
  case always
  /// Never. The history of a file that has one doesn't change, so its readers miss these saves.
  case never
}
