public import HoldfastFiles
public import HoldfastStore

/// Options for opening and keeping a SQLite store's file.
///
/// The defaults suit most applications. Changes are durable when a save returns, readers never wait for the writer, and only the owner can
/// read new files.
///
/// Options don't depend on the model. They aren't stored in the file, except the journal mode, which is part of SQLite's file format, and
/// ``maximumHistoryChangeCount``.
public struct SQLiteStoreOptions: Sendable, Hashable {
  /// Whether a power loss can lose a save that has returned. A crash of the process never can.
  public enum Durability: String, Sendable, Hashable, Codable, CaseIterable {
    /// The change is on the disk when the save returns.
    case full
    /// The last saves before a power loss may be missing. The file stays consistent.
    ///
    /// This applies to ``JournalMode/wal``. With ``JournalMode/delete`` it is the same as ``full``, because less syncing could leave an
    /// inconsistent file.
    case normal
  }

  /// Where SQLite keeps the data to undo or complete a transaction.
  public enum JournalMode: String, Sendable, Hashable, Codable, CaseIterable {
    /// A write-ahead log in a file beside the store. Readers and the writer don't wait for each other.
    case wal
    /// A rollback journal that each transaction creates and deletes.
    ///
    /// For file systems without shared memory, and for files that must be complete after each save.
    case delete
  }

  /// Which stores get the fetch indexes that the model declares and the file lacks.
  ///
  /// Fetch indexes aren't part of a model's version, so a model can gain one without a migration. A store that this framework created is
  /// marked in its metadata. A store without the mark was created by another program, such as Core Data, which may not expect new indexes.
  public enum IndexAddition: String, Sendable, Hashable, Codable, CaseIterable {
    /// Stores that this framework created.
    case ownStores
    /// All stores.
    case allStores
    /// No stores.
    case never

    func includes(ownStore: Bool) -> Bool {
      switch self {
      case .ownStores: ownStore
      case .allStores: true
      case .never: false
      }
    }
  }

  /// Which SQL statements are logged, at the level `debug` and with the label `holdfast.sqlite`.
  ///
  /// Each comes with its duration in seconds, which SQLite measures in steps of a millisecond,
  /// and which includes the time between its rows.
  public enum StatementLogging: String, Sendable, Hashable, Codable, CaseIterable {
    /// None.
    case none
    /// All statements, without the values of objects and predicates.
    case statements
    /// All statements with values, which may be personal data. The text of a statement takes more memory than its values.
    case values
  }

  /// Whether the store is opened read-only. Defaults to false.
  ///
  /// If true, a missing file is an error, whatever ``createsIfMissing`` is. The store doesn't create, change or remove any file, so it also
  /// opens on a read-only medium: <doc:SharedFiles>.
  public var isReadOnly: Bool
  /// Whether a power loss can lose a save that has returned. Defaults to ``Durability/full``.
  public var durability: Durability
  /// Where SQLite keeps the data to undo or complete a transaction. Defaults to ``JournalMode/wal``.
  ///
  /// Opening an existing file for writing converts it.
  public var journalMode: JournalMode
  /// The time to wait for another process's lock. Defaults to 5 seconds.
  ///
  /// After that time, the call throws `StoreError.Code.locked`. A request whose deadline passes before throws `timedOut`, and a fetch that
  /// is cancelled throws `cancelled`.
  public var busyTimeout: Duration
  /// The maximum memory for file pages cached by one connection, in bytes. Defaults to 64 MiB.
  ///
  /// Memory is used only for pages that were read.
  public var cacheBytes: Int
  /// The number of bytes of the file to map into memory instead of reading them. Defaults to 0.
  ///
  /// With a mapped file, a signal kills the process if the disk fails or another program truncates the file. Without mapping, such a
  /// failure throws an error.
  public var mmapBytes: Int
  /// The maximum number of requests that read at the same time. Defaults to 4.
  ///
  /// Each has its own connection, and further requests wait. Any number of contexts may use one store. A higher limit helps if more
  /// processors can read at once.
  public var maximumReaders: Int
  /// The time that a request waits for others to finish. Defaults to 30 seconds.
  ///
  /// After that time, the request throws `StoreError.Code.locked` and can be retried.
  public var readerTimeout: Duration
  /// The maximum number of ``/HoldfastStore/ReadViewKind/snapshot`` views in use. Defaults to 4.
  ///
  /// Beginning another one throws `StoreError.Code.tooManyReadViews`; it doesn't wait. A snapshot has its own connection and prevents the
  /// write-ahead log from restarting. When the log has 8 times the length of ``checkpointPages``, the store logs a warning, and again each
  /// time that the length has doubled. Snapshots don't affect other requests.
  public var maximumSnapshots: Int
  /// The length of the write-ahead log, in pages, at which a save shortens it. Defaults to 1,000.
  ///
  /// The save moves the log's pages into the file.
  public var checkpointPages: Int
  /// The permissions of new files, independent of the process's umask. Defaults to 0o600.
  ///
  /// The files that SQLite keeps beside the store get the same permissions.
  public var filePermissions: UInt32
  /// Whether to accept shared folders and files owned by other users. Defaults to false.
  ///
  /// If true, the store accepts a folder in which other users can replace files, and files beside the store that other users own: SQLite's
  /// `-journal`, `-wal` and `-shm`, and the folder of external values. ``/HoldfastFiles/DurableFileOptions/allowsSharedFolder`` has the
  /// rules.
  public var allowsSharedFolder: Bool
  /// Whether opening creates the file if it doesn't exist. Defaults to true.
  public var createsIfMissing: Bool
  /// The maximum size of the file, in bytes. Defaults to nil: no limit.
  ///
  /// A save that would exceed it throws `StoreError.Code.diskFull`.
  public var maximumFileBytes: Int?
  /// The maximum size of a text or data value, in bytes, for saving and reading. Defaults to 256 MiB.
  ///
  /// A larger one throws `StoreError.Code.unstorableValue`. So does saving an object whose values are larger together. Values in external
  /// files don't count; see ``externalData``.
  public var maximumValueBytes: Int
  /// The maximum duration of a request. Defaults to nil: no limit.
  ///
  /// Requests are fetches, reads of rows and relationships, and the preparation of a save. A request that takes longer throws
  /// `StoreError.Code.timedOut` and changes nothing. Set a limit for a file that you don't trust.
  ///
  /// The limit is checked while SQLite runs statements. It includes the time in which the caller processes rows, but not the wait for a
  /// connection.
  public var requestTimeout: Duration?
  /// The maximum memory for the result of one request, in bytes. Defaults to nil: no limit.
  ///
  /// The limit applies to rows of a fetch or of faults, to the groups of a grouped fetch, and to destination keys of a relationship. A
  /// larger result throws `StoreError.Code.tooLarge`.
  ///
  /// The limit is checked after each batch of rows. A batch has at least one row, which can be larger than the limit. SQLite may deliver
  /// more rows than the fetch returns, if the framework evaluates part of the predicate. Long texts in minimum and maximum aggregates
  /// aren't counted.
  public var maximumFetchByteCount: Int?
  /// Which values are stored in separate files, if their attribute allows that.
  ///
  /// The files are `.NAME_SUPPORT/_EXTERNAL_DATA/UUID` beside the store.
  public var externalData: ExternalDataOptions
  /// Whether a decimal that no SQLite number represents exactly is stored as a blob of its digits. Defaults to false.
  ///
  /// If false, saving such a decimal throws `StoreError.Code.unstorableValue`. Integers within 64 bits, all decimals of up to 15
  /// digits, and those that a floating-point number is read as are always stored as numbers, as in Core Data's files. A blob keeps all 38
  /// digits. Holdfast reads blobs whatever the option is; other
  /// programs don't expect them.
  public var storesExactDecimals: Bool

  /// Which statements are logged, for finding out what a request does. Defaults to ``StatementLogging/none``.
  public var statementLogging: StatementLogging

  /// Whether saves write a history, in Core Data's tables. Defaults to ``/HoldfastStore/HistoryTracking/ifPresent``.
  ///
  /// With ``/HoldfastStore/HistoryTracking/never``, programs that read the file's history don't notice the saves.
  public var historyTracking: HistoryTracking = .ifPresent

  /// Whether saves of other processes are reported as they happen. Defaults to false.
  ///
  /// If true, the coordinator removes changed rows from its cache, and `savedChanges()` and contexts that merge automatically receive the
  /// changes. On Linux, a report takes a few milliseconds. Elsewhere, and beyond the system's limit of watched folders, it takes up to a second.
  ///
  /// - If the file has a history when it is opened, reports contain the IDs of the changed objects. Saves of programs that write no history
  ///   aren't reported.
  /// - Otherwise, reports contain no IDs: `mayIncludeOthers` is true, and contexts refresh all objects. Each commit to the file is reported,
  ///   whatever it changed. A save of new objects takes two commits. Nothing is reported if the file is in a read-only place without shared
  ///   memory.
  public var reportsOtherProcesses = false

  /// The maximum number of changes in the history. Defaults to 1,000,000; nil for no maximum.
  ///
  /// It has an effect with ``/HoldfastStore/HistoryTracking/always``. Opening the store then records it in the file's metadata, and with
  /// ``/HoldfastStore/HistoryTracking/ifPresent``, saves keep the maximum that is recorded there. A history that another program began, such
  /// as Core Data, has none: it grows until a program opens the file with ``/HoldfastStore/HistoryTracking/always``, or deletes transactions.
  ///
  /// A save that exceeds it deletes the oldest transactions. Tokens of these are then invalid. The last transaction is always kept.
  public var maximumHistoryChangeCount: Int? = 1_000_000

  /// Which stores get missing fetch indexes when they are opened for writing. Defaults to ``IndexAddition/ownStores``.
  ///
  /// An index is recognised by its table and columns, so an index that another program created under another name isn't created again. If
  /// another process is writing at that moment, the store opens without the index, and a later opening adds it.
  public var indexAddition: IndexAddition

  /// Creates options. Each parameter has a default.
  ///
  /// Opening a store traps if one of the durations and numbers that are parameters here is negative. It also traps if ``maximumReaders``,
  /// ``maximumSnapshots``, ``checkpointPages``, ``maximumFileBytes`` or ``maximumValueBytes`` is 0.
  public init(
    isReadOnly: Bool = false, durability: Durability = .full, journalMode: JournalMode = .wal, busyTimeout: Duration = .seconds(5),
    cacheBytes: Int = 64 << 20, mmapBytes: Int = 0, maximumReaders: Int = 4, readerTimeout: Duration = .seconds(30),
    maximumSnapshots: Int = 4, checkpointPages: Int = 1000, filePermissions: UInt32 = 0o600, allowsSharedFolder: Bool = false,
    createsIfMissing: Bool = true,
    maximumFileBytes: Int? = nil, maximumValueBytes: Int = 256 << 20,
    requestTimeout: Duration? = nil, maximumFetchByteCount: Int? = nil,
    externalData: ExternalDataOptions = ExternalDataOptions(), storesExactDecimals: Bool = false,
    indexAddition: IndexAddition = .ownStores, statementLogging: StatementLogging = .none
  ) {
    self.isReadOnly = isReadOnly
    self.durability = durability
    self.journalMode = journalMode
    self.busyTimeout = busyTimeout
    self.cacheBytes = cacheBytes
    self.mmapBytes = mmapBytes
    self.maximumReaders = maximumReaders
    self.readerTimeout = readerTimeout
    self.maximumSnapshots = maximumSnapshots
    self.checkpointPages = checkpointPages
    self.filePermissions = filePermissions
    self.allowsSharedFolder = allowsSharedFolder
    self.createsIfMissing = createsIfMissing
    self.maximumFileBytes = maximumFileBytes
    self.maximumValueBytes = maximumValueBytes
    self.requestTimeout = requestTimeout
    self.maximumFetchByteCount = maximumFetchByteCount
    self.externalData = externalData
    self.storesExactDecimals = storesExactDecimals
    self.indexAddition = indexAddition
    self.statementLogging = statementLogging
  }

  /// The same options with at most 4 MiB of cached pages for each connection.
  var withSmallCaches: SQLiteStoreOptions {
    var options = self
    options.cacheBytes = min(cacheBytes, 4 << 20)
    return options
  }
}
