/// The SQLite result codes that this layer distinguishes.
///
/// The extended ones are numbers because SQLite defines them by expressions that Swift doesn't import. They are part of SQLite's stable
/// interface.
enum SQLiteResultCode {
  static let ok: Int32 = 0
  static let error: Int32 = 1
  static let permission: Int32 = 3
  static let busy: Int32 = 5
  static let locked: Int32 = 6
  static let outOfMemory: Int32 = 7
  static let readOnly: Int32 = 8
  static let interrupted: Int32 = 9
  static let inputOutput: Int32 = 10
  static let corrupt: Int32 = 11
  static let full: Int32 = 13
  static let cannotOpen: Int32 = 14
  static let `protocol`: Int32 = 15
  static let schemaChanged: Int32 = 17
  static let tooBig: Int32 = 18
  static let constraint: Int32 = 19
  static let mismatch: Int32 = 20
  static let misuse: Int32 = 21
  static let noLargeFiles: Int32 = 22
  static let unauthorized: Int32 = 23
  static let notADatabase: Int32 = 26
  static let warning: Int32 = 28
  static let row: Int32 = 100
  static let done: Int32 = 101

  static let warningAutomaticIndex: Int32 = 284
  static let busySnapshot: Int32 = 517
  static let readOnlyMoved: Int32 = 1032
  static let readOnlyCannotInitialise: Int32 = 1288
  static let inputOutputRead: Int32 = 266
  static let inputOutputShortRead: Int32 = 522
  static let inputOutputNoMemory: Int32 = 3082
  static let inputOutputWrite: Int32 = 778
  static let inputOutputSyncOfFolder: Int32 = 1290
  static let inputOutputSync: Int32 = 1034
  static let cannotDelete: Int32 = 2570
  static let cannotOpenDirectory: Int32 = 526
  static let cannotOpenLink: Int32 = 1550
  static let constraintPrimaryKey: Int32 = 1555
  static let constraintTrigger: Int32 = 1811
  static let constraintUnique: Int32 = 2067

  /// Whether a file couldn't be read.
  static func isOfReading(_ code: Int32) -> Bool { code == inputOutputRead || code == inputOutputShortRead }
}
