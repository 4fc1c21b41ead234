public import HoldfastFiles

/// How a SQLite store opens and keeps its file.
///
/// The defaults are what most applications want: changes are durable when a save returns, readers never wait for the
/// writer, and new files are readable by their owner only.
///
/// Options say nothing about the model, and they are not stored in the file, with one exception that the file format
/// itself has: the journal mode.
public struct SQLiteStoreOptions: Sendable, Hashable {
  /// When a change is safe from a loss of power. A crash of the process alone never loses a save, with either.
  public enum Durability: String, Sendable, Hashable, Codable, CaseIterable {
    /// The change is on the disk when the save returns.
    case full
    /// The last saves before a loss of power may be missing afterwards; the file is never inconsistent.
    ///
    /// This holds for ``JournalMode/wal``. With ``JournalMode/delete`` it means the same as ``full``, because there
    /// less syncing could leave an inconsistent file.
    case normal
  }

  /// Where SQLite keeps what it needs to undo or complete a transaction.
  public enum JournalMode: String, Sendable, Hashable, Codable, CaseIterable {
    /// A write-ahead log in a file beside the store: readers and the writer do not wait for each other.
    case wal
    /// A rollback journal that each transaction creates and deletes. For file systems without shared memory, and for
    /// files that must be complete on their own after each save.
    case delete
  }

  /// Which stores get the fetch indexes that the model declares and the file lacks.
  ///
  /// Fetch indexes don't belong to a model's version, so a model can gain one without a migration. A store of this framework has a mark
  /// in its metadata; one without the mark was made by another program, such as Core Data, which may not expect new indexes.
  public enum IndexAddition: String, Sendable, Hashable, Codable, CaseIterable {
    /// Stores that this framework made.
    case ownStores
    /// All stores, whichever program made them.
    case allStores
    /// No store.
    case never

    func includes(ownStore: Bool) -> Bool {
      switch self {
      case .ownStores: ownStore
      case .allStores: true
      case .never: false
      }
    }
  }

  /// Whether the store is only read. A missing file is then an error, whatever ``createsIfMissing`` says. Defaults to false.
  ///
  /// Nothing in the folder is created, changed or removed, so the store also opens on a read-only medium: <doc:SharedFiles>.
  public var isReadOnly: Bool
  /// When a change is safe from a loss of power.
  public var durability: Durability
  /// Where SQLite keeps what it needs to undo or complete a transaction. An existing file is converted when it is
  /// opened for writing.
  public var journalMode: JournalMode
  /// How long to wait for a lock that another process holds, in seconds, before the call fails with `StoreError.Code.locked`. Defaults to 5.
  public var busyTimeoutSeconds: Double
  /// The most memory that one connection uses to keep pages of the file. Pages are only kept once they were read.
  public var cacheBytes: Int
  /// How much of the file is mapped into memory instead of being read; 0 maps nothing.
  ///
  /// With a mapped file, an error of the disk or a file that another program truncates ends the process by a signal
  /// instead of an error.
  public var mmapBytes: Int
  /// How many requests read at the same time, each with a connection of its own. Further ones wait. Defaults to 4.
  ///
  /// Any number of contexts may use one store. A higher limit pays when more processors than this can read at once.
  public var maximumReaders: Int
  /// How long a request waits for another one to finish, in seconds, before it fails with `StoreError.Code.locked`, which can be
  /// retried. Defaults to 30.
  public var readerTimeoutSeconds: Double
  /// How many views of kind ``/HoldfastStore/ReadViewKind/snapshot`` may be in use at once; one more fails with
  /// `StoreError.Code.tooManyReadViews`. Defaults to 4.
  ///
  /// A snapshot has a connection for itself and keeps the write-ahead log from starting again, so it is not waited for. Requests outside
  /// snapshots aren't affected by them.
  public var maximumSnapshots: Int
  /// After how many pages in the write-ahead log a save moves them into the file.
  public var checkpointPages: Int
  /// The permissions of a file that the store creates, independent of the process's mask. The files that SQLite
  /// keeps beside it get the same.
  public var filePermissions: UInt32
  /// Whether other users may be able to replace files in the store's folder and own files beside the store. Defaults to false.
  ///
  /// ``/HoldfastFiles/DurableFileOptions/allowsSharedFolder`` has the rules. The files beside the store are SQLite's `-journal`, `-wal` and
  /// `-shm`, and the folder of external values.
  public var allowsSharedFolder: Bool
  /// Whether opening a path without a file makes a new store.
  public var createsIfMissing: Bool
  /// The size that the file may not exceed; a save beyond it fails with `StoreError.Code.diskFull`. Nil is no limit.
  public var maximumFileBytes: Int?
  /// The size of the largest text or data value that can be saved or read.
  public var maximumValueBytes: Int
  /// How long a request may run, in seconds, before it fails with `StoreError.Code.timedOut` and changes nothing: a fetch, reading rows or
  /// relationships, and preparing a save. Nil, the default, means no limit. Set it for a file that you don't trust.
  ///
  /// The limit is checked while SQLite runs statements. Time in which the caller takes rows counts, time spent waiting for a connection
  /// doesn't.
  public var requestTimeoutSeconds: Double?
  /// How many bytes of memory the answer to one request may take: the rows that SQLite delivers to a fetch or for faults, the groups of a
  /// grouped fetch, the targets of a relationship. More fail with `StoreError.Code.tooLarge`. Nil, the default, means no limit.
  ///
  /// Rows are counted a batch at a time, and a batch has at least one row, which can be as large as its values. A fetch may deliver fewer
  /// rows than SQLite does if the framework evaluates part of its predicate. Long texts of extremes aren't counted.
  public var largestFetchBytes: Int?
  /// Which values of attributes that allow it go to files of their own, `.NAME_SUPPORT/_EXTERNAL_DATA/UUID` beside the store.
  public var externalData: ExternalDataOptions
  /// Whether a decimal that no number of SQLite equals is kept as its digits, in a blob; else a save refuses it with
  /// `StoreError.Code.unstorableValue`.
  ///
  /// Whole numbers within 64 bits and all decimals of up to 15 digits are numbers in the file in any case, as Core Data's are. Digits in a
  /// blob keep all 38, and this framework reads them whatever the option says; other programs do not expect them.
  public var storesExactDecimals: Bool

  /// Which stores get the fetch indexes that the model declares and the file lacks, when they are opened for writing. Defaults to those
  /// that this framework made.
  ///
  /// An index is recognised by its table and columns, so one that another program made under another name is not made again. A store that
  /// another process is writing to at that moment opens without the index, and gets it at a later opening.
  public var indexAddition: IndexAddition

  /// Makes options; each has a default.
  public init(
    isReadOnly: Bool = false, durability: Durability = .full, journalMode: JournalMode = .wal, busyTimeoutSeconds: Double = 5,
    cacheBytes: Int = 64 << 20, mmapBytes: Int = 0, maximumReaders: Int = 4, readerTimeoutSeconds: Double = 30,
    maximumSnapshots: Int = 4, checkpointPages: Int = 1000, filePermissions: UInt32 = 0o600, allowsSharedFolder: Bool = false,
    createsIfMissing: Bool = true,
    maximumFileBytes: Int? = nil, maximumValueBytes: Int = 256 << 20,
    requestTimeoutSeconds: Double? = nil, largestFetchBytes: Int? = nil,
    externalData: ExternalDataOptions = ExternalDataOptions(), storesExactDecimals: Bool = false,
    indexAddition: IndexAddition = .ownStores
  ) {
    self.isReadOnly = isReadOnly
    self.durability = durability
    self.journalMode = journalMode
    self.busyTimeoutSeconds = busyTimeoutSeconds
    self.cacheBytes = cacheBytes
    self.mmapBytes = mmapBytes
    self.maximumReaders = maximumReaders
    self.readerTimeoutSeconds = readerTimeoutSeconds
    self.maximumSnapshots = maximumSnapshots
    self.checkpointPages = checkpointPages
    self.filePermissions = filePermissions
    self.allowsSharedFolder = allowsSharedFolder
    self.createsIfMissing = createsIfMissing
    self.maximumFileBytes = maximumFileBytes
    self.maximumValueBytes = maximumValueBytes
    self.requestTimeoutSeconds = requestTimeoutSeconds
    self.largestFetchBytes = largestFetchBytes
    self.externalData = externalData
    self.storesExactDecimals = storesExactDecimals
    self.indexAddition = indexAddition
  }
}
