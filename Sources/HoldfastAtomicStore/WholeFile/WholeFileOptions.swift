public import HoldfastFiles

/// How a whole-file store treats its file.
public struct WholeFileOptions: Sendable {
  /// Durability, lock, size limit, permissions and file system; see ``/HoldfastFiles/DurableFileOptions``. Whether the store is opened
  /// read-only is said there too.
  public var file: DurableFileOptions
  /// Whether a file is opened that is not as Holdfast wrote it: whose digest does not match what it says, or that has none.
  /// False unless said: such a file was damaged, or edited by hand. What can be found out without the digest is checked still.
  /// The next save gives the file a digest again.
  public var allowsUnverified: Bool

  /// Which values of attributes that allow it go to files of their own, `.NAME_SUPPORT/_EXTERNAL_DATA/UUID` beside the file NAME.
  public var externalData: ExternalDataOptions

  /// The maximum number of bytes of memory for the rows of a file, without text and other bytes; nil for 64 MiB and 128 times the size
  /// of the file. A row takes eight bytes for each attribute and to-one relationship, also for those without a value, which take none in the
  /// file: so a small file can have huge rows. A file with larger rows is refused as ``/HoldfastStore/StoreError/Code/tooLarge`` before
  /// they are in memory, and a save that would write one as ``/HoldfastStore/StoreError/Code/unstorableValue``.
  public var largestRows: Int?

  /// Makes options.
  public init(
    file: DurableFileOptions = DurableFileOptions(), allowsUnverified: Bool = false,
    externalData: ExternalDataOptions = ExternalDataOptions(), largestRows: Int? = nil
  ) {
    self.file = file
    self.allowsUnverified = allowsUnverified
    self.externalData = externalData
    self.largestRows = largestRows
  }
}
