"""Click logs in other formats: UBI, Yandex, TianGong-ST, Baidu-ULTR, session Parquet."""
